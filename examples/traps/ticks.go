package traps

import (
	"context"
	"sync"
	"time"
)

// heldTicks keeps the channels of [time.Tick], which hold tickers that nobody can stop. No goroutine is behind them.
func heldTicks() Trap {
	return Trap{
		Name: "held-ticks", Row: "S1-11", Expect: ExpectListed, Grows: Heap, Leaves: smallLeaves,
		Title:   "the channels of time.Tick are kept in a list that is never cut",
		Culprit: siteOf(newTick, ""),
		Leak:    withTicks(false),
		Twin:    withTicks(true),
	}
}

func newTick() <-chan time.Time { return time.Tick(time.Hour) }

func withTicks(cut bool) Start {
	return func(_ context.Context, env Env) (Work, error) {
		var mu sync.Mutex
		var held []<-chan time.Time
		return onObjects(func(context.Context, Object) error {
			mu.Lock()
			defer mu.Unlock()
			if cut {
				held = nil
			}
			for range env.some(tickerSize) {
				held = append(held, newTick())
			}
			return nil
		}), nil
	}
}
