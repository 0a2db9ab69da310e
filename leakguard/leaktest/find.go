package leaktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.uber.org/goleak"

	"github.com/leakguard/leakguard/stackmatch"
)

// ErrLeak is wrapped by the error of [Find].
var ErrLeak = errors.New("leaktest: goroutines are left")

// Find looks for goroutines that the options do not ignore, whoever has started them, as goleak's function of this name. It
// waits at most the time of [Settle]; the error wraps [ErrLeak] and describes them.
func Find(opts ...Option) error {
	leaks, waited, asked, err := find(opts)
	if err != nil || len(leaks) == 0 {
		return err
	}
	return fmt.Errorf("%w: %d had not ended after %s:\n%s", ErrLeak, len(leaks), waited.Round(time.Millisecond), describe(leaks, asked))
}

// Leaks is [Find] as data. An error means that it could not look.
func Leaks(opts ...Option) ([]Leak, error) {
	leaks, _, _, err := find(opts)
	return leaks, err
}

// Filter gives those of some leaks that the options do not ignore, and that are not in before. What it looks at is a moment
// of the past: [Settle] has no meaning for it.
func Filter(leaks, before []Leak, opts ...Option) ([]Leak, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	was := make(map[uint64]bool, len(before))
	for i := range before {
		was[before[i].ID] = true
	}
	k, used := newChecker(c, scope{}), limits{}
	var left []Leak
	for i := range leaks {
		l := &leaks[i]
		if was[l.ID] || c.current[l.ID] {
			continue
		}
		group := groupOf(&stackmatch.Goroutine{Stack: l.Stack, CreatedBy: l.CreatedBy, WaitReason: l.WaitReason, Wait: l.Wait})
		if !k.ignored(&group, 1, used) {
			left = append(left, *l)
		}
	}
	return left, nil
}

// Describe gives leaks as the reports of this package do: equal ones together, with stack, go statement and waiting time.
func Describe(leaks []Leak) string { return describe(leaks, false) }

func find(opts []Option) (leaks []Leak, waited time.Duration, asked bool, err error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, 0, false, err
	}
	if c.cleanup != nil {
		return nil, 0, false, fmt.Errorf("%w: Cleanup is not for Find", ErrOption)
	}
	k := newChecker(c, newScope(""))
	k.everything = true
	leaks, waited, err = k.settled()
	return leaks, waited, err == nil && k.prove(leaks), err
}

// Check runs f and fails the test when goroutines are left that f has started. It is VerifyNone for a part of a test. f runs
// on a goroutine of its own, with the context that VerifyNone gives; it may call t.FailNow and panic.
func Check(t TB, f func(ctx context.Context), opts ...Option) {
	t.Helper()
	c, err := newConfig(opts)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	k := newChecker(c, newScope(t.Name()+"/Check"))
	returned, panicked := runApart(func() { f(k.scope.enter(contextOf(t))) })
	leaks, waited, err := k.settled()
	k.report(t, leaks, waited, err)
	if c.cleanup != nil {
		c.cleanup(0)
	}
	switch {
	case panicked != nil:
		panic(panicked)
	case !returned:
		runtime.Goexit()
	}
}

// runApart runs f on a goroutine of its own and waits for it.
func runApart(f func()) (returned bool, panicked any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		f()
		returned = true
	}()
	<-done
	return returned, panicked
}

// GoleakOptions gives the entries of [Pack] as options of goleak, for a suite that stays there. goleak knows no states,
// creators and counts, so they are wider than here: goroutines are ignored by a function on their stack alone. Entries for
// package testing and the runtime are left out, since goleak has its own.
func GoleakOptions() []goleak.Option {
	skip := map[string]bool{}
	for _, e := range alwaysIgnored() {
		skip[e.ID] = e.ID != "LT-testing-example" // which goleak does not know
	}
	var options []goleak.Option
	for _, e := range Pack() {
		if skip[e.ID] || e.Function == "net/rpc.(*Client).input" {
			continue
		}
		// goleak takes whole names only, and a go statement mostly starts a literal or the wrapper of a call.
		for _, closure := range []string{"", ".func1", ".func2", ".func3", ".gowrap1", ".gowrap2"} {
			options = append(options, goleak.IgnoreAnyFunction(e.Function+closure))
		}
	}
	return options
}
