package traps

import (
	"context"
	"sync"
	"time"
)

// ticksMade is how many tickers a rollout makes, at some 250 bytes each.
const ticksMade = 2000

// heldTicks keeps the channels of [time.Tick], which hold tickers that nobody can stop. No goroutine is behind them.
func heldTicks() Trap {
	return Trap{
		Name: "held-ticks", Row: "S1-11", Expect: ExpectListed, Grows: Heap,
		Gap:     "nothing in 75 seconds at --scale=0.05",
		Title:   "the channels of time.Tick are kept in a list that is never cut",
		Culprit: siteOf(newTick, ""),
		Leak:    withTicks(false),
		Twin:    withTicks(true),
	}
}

func newTick() <-chan time.Time { return time.Tick(time.Hour) }

func withTicks(cut bool) Start {
	return func(context.Context, Env) (Work, error) {
		var mu sync.Mutex
		var held []<-chan time.Time
		return onObjects(func(context.Context, Object) error {
			mu.Lock()
			defer mu.Unlock()
			if cut {
				held = nil
			}
			for range ticksMade {
				held = append(held, newTick())
			}
			return nil
		}), nil
	}
}
