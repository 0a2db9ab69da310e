package traps

import "context"

// reconcileGoroutine is the classic: a goroutine per reconcile that never looks at its context.
func reconcileGoroutine() Trap {
	return Trap{
		Name: "reconcile-goroutine", Row: "S1-02", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "a goroutine started in Reconcile waits for an answer that never comes and does not look at ctx",
		Culprit: siteOf(leakReconcileGoroutine, ".func1"),
		Leak:    inReconcile(leakReconcileGoroutine),
		Twin:    inReconcile(cleanReconcileGoroutine),
	}
}

func leakReconcileGoroutine(context.Context, Object) error {
	answer := make(chan string)
	go func() {
		<-answer
	}()
	return nil
}

func cleanReconcileGoroutine(ctx context.Context, _ Object) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := make(chan string)
	go func() {
		select {
		case <-answer:
		case <-ctx.Done():
		}
	}()
	return nil
}
