package leaktest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/probes"
)

// VerifyResources fails a test that leaves more of something behind than there was: bodies, watches, handlers, informers,
// queues, file descriptors, whatever the probes count. It belongs into the first line of the test, where it reads the
// probes, and reads them again when the test and its other cleanups are over, until every count is back or the time of
// [Settle] is over. A reading that a probe itself calls leaked is a failure, however many there were before.
//
//	transport := probes.NewTransport(probes.LedgerOptions{})
//	leaktest.VerifyResources(t, []probes.Probe{transport, leaktest.FileDescriptors()})
//	cfg.Wrap(transport.Wrap)
//
// A probe counts for whoever uses what it is attached to, so probes of this test's own clients work in a parallel test;
// those of the whole process, such as FileDescriptors, do not. Options are [Settle], [WhileSettling] and [AllowResource].
func VerifyResources(t TB, list []probes.Probe, opts ...Option) {
	t.Helper()
	c, err := newConfig(opts)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	if len(list) == 0 {
		t.Errorf("leaktest: VerifyResources was given no probe, it would check nothing")
		return
	}
	set, err := probes.NewSet(0, list...)
	if err != nil {
		t.Errorf("leaktest: %v", err)
		return
	}
	r := &resources{config: c, set: set}
	r.before = r.read()
	t.Cleanup(func() {
		t.Helper()
		r.finish(t)
	})
}

// AllowResource lets a resource grow by n during a test, for what it is to leave behind: "response bodies". The reason is required.
func AllowResource(resource string, n float64, reason string) Option {
	return optionFunc(func(c *config) error {
		if resource == "" || strings.TrimSpace(reason) == "" {
			return fmt.Errorf("%w: AllowResource(%q, %g, %q) needs a resource and a reason", ErrOption, resource, n, reason)
		}
		if c.allowed == nil {
			c.allowed = map[string]float64{}
		}
		c.allowed[resource] = n
		return nil
	})
}

// resourceKey is what two readings must have in common to be compared.
type resourceKey struct {
	probe, resource, scope, culprit string
	leaked                          bool
}

type resources struct {
	config *config
	set    *probes.Set
	before map[resourceKey]probes.Reading
}

// read asks all probes.
func (r *resources) read() map[resourceKey]probes.Reading {
	out := map[resourceKey]probes.Reading{}
	for _, reading := range r.set.Read(context.Background(), nil) {
		if reading.Total || reading.Shown { // it does not come back
			continue
		}
		key := resourceKey{reading.Probe, reading.Resource, reading.Scope, reading.Culprit.Function, reading.Leaked}
		if was, ok := out[key]; ok {
			reading.Count += was.Count
		}
		out[key] = reading
	}
	return out
}

// grown gives the readings of more than there was.
func (r *resources) grown() []probes.Reading {
	now := r.read()
	var more []probes.Reading
	for key, reading := range now {
		if reading.Count > r.before[key].Count+r.config.allowed[reading.Resource] {
			more = append(more, reading)
		}
	}
	slices.SortFunc(more, func(a, b probes.Reading) int {
		return cmp.Or(cmp.Compare(a.Probe, b.Probe), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Culprit.Function, b.Culprit.Function))
	})
	return more
}

func (r *resources) finish(t TB) {
	t.Helper()
	start := time.Now()
	pause := 50 * time.Microsecond
	var more []probes.Reading
	for try := 0; ; try++ {
		if more = r.grown(); len(more) == 0 || time.Since(start) >= r.config.settle {
			break
		}
		(&checker{config: r.config}).hurry(try)
		<-time.After(min(pause, max(0, r.config.settle-time.Since(start))))
		pause = min(2*pause, maxPause)
	}
	for _, s := range r.set.Stats() {
		if s.Off || s.Late > 0 {
			t.Errorf("leaktest: the probe %s did not answer (%d panics, %d times late), so %s was not checked", s.Probe, s.Panics, s.Late, t.Name())
		}
	}
	if len(more) > 0 {
		t.Errorf("leaktest: %s left resources behind that had not come back after %s:\n%s", t.Name(), time.Since(start).Round(time.Millisecond), r.describe(more))
	}
}

func (r *resources) describe(more []probes.Reading) string {
	var b strings.Builder
	for _, reading := range more {
		key := resourceKey{reading.Probe, reading.Resource, reading.Scope, reading.Culprit.Function, reading.Leaked}
		fmt.Fprintf(&b, "\n%s: %g %s, before the test %g", reading.Probe, reading.Count, reading.Resource, r.before[key].Count)
		if reading.Scope != "" {
			b.WriteString(", of " + reading.Scope)
		}
		if !reading.Culprit.IsZero() {
			fmt.Fprintf(&b, "\n    made at %s", reading.Culprit)
		}
		for _, text := range []string{reading.Reason, reading.Advice} {
			if text != "" {
				b.WriteString("\n    " + text)
			}
		}
		for _, f := range reading.Stack[:min(len(reading.Stack), maxSiteFrames)] {
			fmt.Fprintf(&b, "\n        %s\n            %s:%d", f.Function, f.File, f.Line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// FileDescriptors counts the open file descriptors of the process. Where there is no /proc it counts nothing.
func FileDescriptors() probes.Probe { return descriptors{} }

type descriptors struct{}

// Name implements probes.Probe.
func (descriptors) Name() string { return "file_descriptors" }

// Read implements probes.Probe.
func (descriptors) Read(_ context.Context, dst []probes.Reading) []probes.Reading {
	if runtime.GOOS != "linux" {
		return dst
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return dst
	}
	// Reading the folder takes one descriptor itself.
	return append(dst, probes.Reading{Resource: "file descriptors", Count: float64(len(entries) - 1), Covariate: -1})
}

// Counter makes a probe of a function, for what a test can count itself: the entries of a cache, the open connections
// of a pool. name is lower case words joined by underscores; it is the resource too. count may be called from any goroutine.
func Counter(name string, count func() int) probes.Probe { return counter{name, count} }

type counter struct {
	name  string
	count func() int
}

// Name implements probes.Probe.
func (c counter) Name() string { return c.name }

// Read implements probes.Probe.
func (c counter) Read(_ context.Context, dst []probes.Reading) []probes.Reading {
	return append(dst, probes.Reading{Resource: strings.ReplaceAll(c.name, "_", " "), Count: float64(c.count()), Covariate: -1})
}
