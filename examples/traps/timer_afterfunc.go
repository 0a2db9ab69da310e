package traps

import (
	"context"
	"time"
)

// timerAfterFunc has no goroutine until the timers fire, which is an hour away; until then they hold what their functions
// captured.
func timerAfterFunc() Trap {
	return Trap{
		Name: "timer-afterfunc", Row: "S1-01a", Expect: ExpectAlarm, Grows: Heap,
		Title:   "Reconcile sets timers to look again in an hour, and never stops the ones of the rollout before",
		Culprit: siteOf(lookAgain, ""),
		Leak:    inReconcile(leakTimerAfterFunc),
		Twin:    inReconcile(cleanTimerAfterFunc),
	}
}

func leakTimerAfterFunc(_ context.Context, object Object) error {
	for range states {
		lookAgain(object)
	}
	return nil
}

func cleanTimerAfterFunc(_ context.Context, object Object) error {
	for range states {
		defer lookAgain(object).Stop()
	}
	return nil
}

func lookAgain(object Object) *time.Timer {
	s := &state{name: object.Name}
	return time.AfterFunc(time.Hour, func() { s.data[0]++ })
}
