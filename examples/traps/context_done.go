package traps

import "context"

// contextDone waits for the end of a child that nobody cancels, of a parent that lives on.
func contextDone() Trap {
	return Trap{
		Name: "context-done", Row: "S2-11h", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "a goroutine waits for the Done of a context derived from the operator's own that nobody cancels",
		Culprit: siteOf(waitForDone, ""),
		Leak:    withLife(leakContextDone),
		Twin:    withLife(cleanContextDone),
	}
}

func leakContextDone(life context.Context) {
	ctx, cancel := context.WithCancel(life)
	_ = cancel // this is the trap
	go waitForDone(ctx)
}

func cleanContextDone(life context.Context) {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	go waitForDone(ctx)
}

func waitForDone(ctx context.Context) {
	<-ctx.Done()
}
