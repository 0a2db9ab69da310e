package traps

import "context"

// selectForever is the end of a goroutine that has nothing left to do and does not know it.
func selectForever() Trap {
	return Trap{
		Name: "select-forever", Row: "S1-10", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "a goroutine started in Reconcile ends in an empty select",
		Culprit: siteOf(leakSelectForever, ".func1"),
		Leak:    inReconcile(leakSelectForever),
		Twin:    inReconcile(cleanSelectForever),
	}
}

func leakSelectForever(context.Context, Object) error {
	go func() {
		select {}
	}()
	return nil
}

func cleanSelectForever(ctx context.Context, _ Object) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-ctx.Done()
	}()
	return nil
}
