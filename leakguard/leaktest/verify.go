package leaktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
)

// ErrParallel occurs when an assertion is used in a parallel test that cannot tell there whose goroutines or memory it sees.
var ErrParallel = errors.New("leaktest: not possible in a parallel test")

// ErrOrder occurs when [VerifyNone] is called after the test has started goroutines, which it would not see then.
var ErrOrder = errors.New("leaktest: VerifyNone must be the first line of the test")

// VerifyNone fails a test that leaves goroutines behind. It belongs into the first line of the test:
//
//	func TestQueue(t *testing.T) {
//		leaktest.VerifyNone(t)
//
// From there on everything that the test starts carries its label, and so do the goroutines which those start. When the
// test, its subtests and all its other cleanups are over, the check waits until they have ended, at most the time of
// [Settle], and reports those that have not. What other tests run is not this test's leak, so it works in parallel tests,
// before and after t.Parallel(), and in subtests, whose leaks their parent does not report again.
//
// The context is that of the test, with the label. Code that sets goroutine labels of its own from a context, by [pprof.Do] or
// leakguard's wrapper of a reconciler, keeps the test's label when it is given this one.
//
// Called by defer, VerifyNone behaves as goleak's: at that moment nothing may be running in the process but what the options
// ignore and what carries the label of other tests. In a parallel test that form is refused ([ErrParallel]), since it
// could not tell the goroutines of other tests from this one's. A call that is not the first line, after goroutines
// were started that are still running, is refused too ([ErrOrder]): a check would look as if it passed.
func VerifyNone(t TB, opts ...Option) context.Context {
	t.Helper()
	ctx := contextOf(t)
	c, err := newConfig(opts)
	if err != nil {
		t.Errorf("%v", err)
		return ctx
	}
	called := calledFrom(1)
	k := newChecker(c, newScope(t.Name()))
	k.function = called.test
	if called.deferred {
		k.deferred(t)
		return ctx
	}
	checking()
	if err := k.begin(); err != nil {
		t.Errorf("%v", err)
	}
	ctx = k.scope.enter(ctx)
	t.Cleanup(func() {
		t.Helper()
		k.finish(t)
	})
	return ctx
}

// contextOf gives the test's context.
func contextOf(t TB) context.Context {
	if c, ok := t.(interface{ Context() context.Context }); ok {
		return c.Context()
	}
	return context.Background()
}

// fewGoroutines is up to how many a dump is cheap enough to take at the beginning of each test.
const fewGoroutines = 100

// begin counts the goroutines that carry no label, and refuses to go on where the test has started some of them.
func (k *checker) begin() error {
	k.baseline = map[uint64]int{}
	suspicious := map[uint64]int{}
	err := profileGroups(func(groups []stackmatch.Group) {
		many := elders.shrink(groups) > fewGoroutines
		for i := range groups {
			g := &groups[i]
			if s, ok := scopeOf(g.Labels); !ok {
				k.baseline[g.ID] = g.Count
			} else if !s.owns(k.scope) && s.name != k.scope.name {
				continue // another test's
			}
			if many && g.Count <= elders.count(g.ID) {
				continue
			}
			if !k.ignored(g, g.Count, limits{}) {
				suspicious[g.ID] = g.Count
			}
		}
	})
	if err != nil || len(suspicious) == 0 {
		return err
	}
	if err := k.refuse(); err != nil {
		return err
	}
	elders.note(suspicious)
	return nil
}

// refuse gives an error when goroutines are running which descend from the test's.
func (k *checker) refuse() error {
	goroutines, err := dumpGoroutines()
	if err != nil || len(goroutines) == 0 {
		return err
	}
	family := descendants(goroutines)
	var early []Leak
	for i := range goroutines[1:] {
		g := &goroutines[i+1]
		group := groupOf(g)
		if family[g.ID] && !k.config.current[g.ID] && !k.ignored(&group, 1, limits{}) {
			early = append(early, k.leak(g, &group))
		}
	}
	if len(early) == 0 {
		return nil
	}
	k.known = map[uint64]bool{}
	for i := range early {
		k.known[early[i].ID] = true
	}
	return fmt.Errorf("%w: %s has started %d goroutines before it, which would escape the check:\n%s", ErrOrder, k.scope.name, len(early), describe(early, false))
}

// finish is the check at the end of a test.
func (k *checker) finish(t TB) {
	t.Helper()
	checking()
	defer k.scope.enter(context.Background()) // for the test's other cleanups
	leaks, waited, err := k.settled()
	k.report(t, leaks, waited, err)
	if k.config.cleanup != nil {
		k.config.cleanup(0)
	}
}

// deferred is goleak's check.
func (k *checker) deferred(t TB) {
	t.Helper()
	if isParallel(t) {
		t.Errorf("%v: defer VerifyNone(t) looks at all goroutines of the process, and those of tests that run beside %s are among them; "+
			"call leaktest.VerifyNone(t) in the first line of the test instead, without defer", ErrParallel, t.Name())
		return
	}
	k.all = true
	leaks, waited, err := k.settled()
	k.report(t, leaks, waited, err)
	if k.config.cleanup != nil {
		k.config.cleanup(0)
	}
}

// report fails the test when something is left.
func (k *checker) report(t TB, leaks []Leak, waited time.Duration, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("leaktest: %s was not checked: %v", k.scope.name, err)
		return
	}
	if len(leaks) == 0 {
		return
	}
	asked := k.prove(leaks)
	t.Errorf("leaktest: %s left %d goroutines behind that had not ended after %s:\n%s", k.scope.name, len(leaks), waited.Round(time.Millisecond), describe(leaks, asked))
	if err = reported.add(leaks, k.scope); err != nil {
		t.Errorf("%v", err)
	}
}
