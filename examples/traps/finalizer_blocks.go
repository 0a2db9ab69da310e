package traps

import (
	"context"
	"runtime"
)

// finalizerGoroutine starts a goroutine in a finalizer, where no label says which reconcile it belongs to.
func finalizerGoroutine() Trap {
	return Trap{
		Name: "finalizer-goroutine", Row: "S1-17b", Expect: ExpectAlarm, Grows: Goroutines,
		Rules:   []string{"growth"},
		Title:   "a finalizer starts a goroutine that blocks, which keeps the object",
		Culprit: siteOf(report, ""),
		Leak:    inReconcile(leakFinalizerGoroutine),
		Twin:    inReconcile(cleanFinalizerGoroutine),
	}
}

func leakFinalizerGoroutine(_ context.Context, object Object) error {
	runtime.SetFinalizer(newState(object), func(s *state) { go report(s, make(chan string)) })
	return nil
}

func cleanFinalizerGoroutine(_ context.Context, object Object) error {
	runtime.SetFinalizer(newState(object), func(s *state) { go report(s, make(chan string, 1)) })
	return nil
}

func report(s *state, to chan<- string) {
	to <- s.name
}

// blockedFinalizer stops the one goroutine that runs all finalizers of the process.
func blockedFinalizer() Trap {
	return Trap{
		Name: "blocked-finalizer", Row: "S1-17c", Expect: ExpectAlarm, Grows: Counted,
		Alone:   "stops every other finalizer",
		Within:  100, // a finalizer may take five minutes
		Title:   "one finalizer blocks, and so no other finalizer of the process ever runs",
		Culprit: Site{Function: "finalizers that wait"},
		Leak: func(life context.Context, _ Env) (Work, error) {
			return finalized(func(*state) { <-life.Done() }), nil
		},
		Twin: func(context.Context, Env) (Work, error) { return finalized(func(*state) {}), nil },
	}
}

// finalized makes objects that need the finalizer to run before they go.
func finalized(end func(*state)) Work {
	return Work{Reconcile: func(_ context.Context, object Object) error {
		for range 4 {
			runtime.SetFinalizer(newState(object), end)
		}
		return nil
	}}
}
