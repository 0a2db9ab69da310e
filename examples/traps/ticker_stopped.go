package traps

import (
	"context"
	"time"
)

// tickerStopped stops its ticker, which does not close the channel.
func tickerStopped() Trap {
	return Trap{
		Name: "ticker-stopped", Row: "S1-14c", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "a goroutine ranges over a ticker that was stopped, which does not end the loop",
		Culprit: siteOf(leakTickerStopped, ".func1"),
		Leak:    inReconcile(leakTickerStopped),
		Twin:    inReconcile(cleanTickerStopped),
	}
}

func leakTickerStopped(context.Context, Object) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	ready := 0
	go func() {
		for range ticker.C {
			ready++
		}
	}()
	return nil
}

func cleanTickerStopped(context.Context, Object) error {
	ticker, done := time.NewTicker(poll), make(chan struct{})
	defer close(done)
	defer ticker.Stop()
	ready := 0
	go func() {
		for {
			select {
			case <-ticker.C:
				ready++
			case <-done:
				return
			}
		}
	}()
	return nil
}
