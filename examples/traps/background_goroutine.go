package traps

import (
	"context"
	"time"
)

// backgroundGoroutine leaks where there is no reconcile to blame: only its growth tells.
func backgroundGoroutine() Trap {
	return Trap{
		Name: "background-goroutine", Row: "S2-02", Expect: ExpectAlarm, Grows: Goroutines, Controller: RunnableController,
		Rules:   []string{"growth"},
		Title:   "a Runnable outside of any reconcile starts a goroutine a second that never ends",
		Culprit: siteOf(leakBackgroundGoroutine, ".func1"),
		Leak:    everySecond(leakBackgroundGoroutine),
		Twin:    everySecond(cleanBackgroundGoroutine),
	}
}

func everySecond(do func()) Start {
	return func(context.Context, Env) (Work, error) {
		return Work{Run: func(ctx context.Context) error {
			ticker := time.NewTicker(time.Second)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					do()
				case <-ctx.Done():
					return nil
				}
			}
		}}, nil
	}
}

func leakBackgroundGoroutine() {
	done := make(chan struct{})
	go func() {
		<-done
	}()
}

func cleanBackgroundGoroutine() {
	done := make(chan struct{})
	go func() {
		<-done
	}()
	close(done)
}
