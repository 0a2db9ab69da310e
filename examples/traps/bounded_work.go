package traps

import (
	"context"
	"time"
)

// ignoredContext and statusLater are work that goes on behind the reconcile and ends by itself. It piles up only when the
// reconciles are faster than it is.
func ignoredContext() Trap {
	return Trap{
		Name: "ignored-context", Row: "S1-12", Expect: ExpectNotice, Grows: Goroutines, Controller: LeakyController,
		Rules:   []string{"orphaned"},
		Title:   "a goroutine does not look at its cancelled context, but ends by itself after a second",
		Culprit: siteOf(pause, ""),
		Leak:    inReconcile(leakIgnoredContext),
		Twin:    inReconcile(cleanIgnoredContext),
	}
}

func leakIgnoredContext(context.Context, Object) error {
	go pause(time.Second)
	return nil
}

func cleanIgnoredContext(ctx context.Context, _ Object) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}()
	return nil
}

func pause(d time.Duration) {
	<-time.After(d)
}

func statusLater() Trap {
	return Trap{
		Name: "status-later", Row: "S1-16", Expect: ExpectNotice, Grows: Goroutines, Controller: LeakyController,
		Rules:   []string{"orphaned"},
		Title:   "Reconcile starts a goroutine that sleeps for five seconds and then sets the status",
		Culprit: siteOf(sleep, ""),
		Leak: func(_ context.Context, env Env) (Work, error) {
			return onObjects(func(context.Context, Object) error {
				go sleep(env.scaled(5 * time.Second))
				return nil
			}), nil
		},
		Twin: inReconcile(func(context.Context, Object) error {
			go sleep(0)
			return nil
		}),
	}
}

func sleep(d time.Duration) {
	time.Sleep(d)
}
