package leaktest_test

import (
	"strings"
	"testing"

	"github.com/leakguard/leakguard/leakguard/leaktest"
	"github.com/leakguard/leakguard/stackmatch"
)

// forever is reachable from everywhere, so the runtime cannot prove that nobody will send on it.
var forever = make(chan struct{})

// TestProof wants the runtime's word on a goroutine where the runtime has one (Go 1.27), and no word where it has none.
func TestProof(t *testing.T) {
	const proven, unproven = "the runtime's leak profile proves that it can never run again", "the runtime's leak profile has no proof"
	lost := runFake("TestInner", func(f *fake) {
		leaktest.VerifyNone(f, leaktest.Settle(soon))
		go park(make(chan struct{}))
	})
	reachable := runFake("TestInner", func(f *fake) {
		leaktest.VerifyNone(f, leaktest.Settle(soon))
		go park(forever)
	})
	close(forever)
	switched := runFake("TestInner", func(f *fake) {
		leaktest.VerifyNone(f, leaktest.Settle(soon), leaktest.WithoutProof())
		go park(make(chan struct{}))
	})
	wantFailure(t, switched, "left 1 goroutines")
	if strings.Contains(switched.text(), "leak profile") {
		t.Errorf("WithoutProof asks the runtime all the same:\n%s", switched.text())
	}
	if stackmatch.HasLeakProfile() {
		wantFailure(t, lost, proven)
		wantFailure(t, reachable, unproven)
		return
	}
	for _, f := range []*fake{lost, reachable} {
		if wantFailure(t, f, "left 1 goroutines"); strings.Contains(f.text(), "leak profile") {
			t.Errorf("this runtime has no leak profile, but the report says:\n%s", f.text())
		}
	}
}
