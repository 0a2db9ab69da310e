package traps

import (
	"context"
	"time"
)

// tickerGoroutine never sleeps long: its goroutines run again and again, so the age of their wait says nothing.
func tickerGoroutine() Trap {
	return Trap{
		Name: "ticker-goroutine", Row: "S1-14b", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "a goroutine started in Reconcile ranges over a ticker that nobody stops",
		Culprit: siteOf(leakTickerGoroutine, ".func1"),
		Leak:    inReconcile(leakTickerGoroutine),
		Twin:    inReconcile(cleanTickerGoroutine),
	}
}

const poll = 500 * time.Millisecond

func leakTickerGoroutine(context.Context, Object) error {
	ticker := time.NewTicker(poll)
	ready := 0
	go func() {
		for range ticker.C {
			ready++
		}
	}()
	return nil
}

func cleanTickerGoroutine(ctx context.Context, _ Object) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ticker := time.NewTicker(poll)
	ready := 0
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				ready++
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}
