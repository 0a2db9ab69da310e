package leaktest_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leakguard/leakguard/leakguard/leaktest"
)

// fake is a test whose failures are looked at.
type fake struct {
	name     string
	parallel bool

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (f *fake) Helper()      {}
func (f *fake) Name() string { return f.name }

func (f *fake) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

func (f *fake) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

func (f *fake) Setenv(string, string) {
	if f.parallel {
		panic("testing: test using t.Setenv can not use t.Parallel")
	}
}

func (f *fake) text() string { return strings.Join(f.failures, "\n") }

// runFake runs a test body as package testing does: on a goroutine of its own, cleanups last.
func runFake(name string, body func(t *fake)) *fake {
	f := &fake{name: name}
	return f.run(body)
}

func (f *fake) run(body func(t *fake)) *fake {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, cleanup := range slices.Backward(f.cleanups) {
				cleanup()
			}
		}()
		body(f)
	}()
	<-done
	return f
}

var _ leaktest.TB = (*fake)(nil)

// wantFailure checks that a test failed exactly once, with all the words.
func wantFailure(t *testing.T, f *fake, words ...string) {
	t.Helper()
	if len(f.failures) != 1 {
		t.Fatalf("%s has %d failures, want 1:\n%s", f.name, len(f.failures), f.text())
	}
	for _, w := range words {
		if !strings.Contains(f.failures[0], w) {
			t.Errorf("the failure of %s does not say %q:\n%s", f.name, w, f.failures[0])
		}
	}
}

// wantSilence checks that a test did not fail.
func wantSilence(t *testing.T, f *fake) {
	t.Helper()
	if len(f.failures) != 0 {
		t.Errorf("%s failed:\n%s", f.name, f.text())
	}
}
