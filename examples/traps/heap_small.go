package traps

import (
	"context"
	"math"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// The leaks of this file leave a hundred bytes or so at a time. Here each rollout makes some thousands of them.
const many = 4000

// heldTickers keeps tickers in a slice, which needs no goroutine.
func heldTickers() Trap {
	return Trap{
		Name: "held-tickers", Row: "S1-14d", Expect: ExpectListed, Grows: Heap,
		Gap:     "alarms by rule heap-growth: what grows so fast is no smaller leak for being made of small things",
		Title:   "tickers are kept in a list that is never cut",
		Culprit: siteOf(newTicker, ""),
		Leak:    withTickers(false),
		Twin:    withTickers(true),
	}
}

func newTicker() *time.Ticker { return time.NewTicker(time.Hour) }

func withTickers(stop bool) Start {
	return func(context.Context, Env) (Work, error) {
		var mu sync.Mutex
		var held []*time.Ticker
		return onObjects(func(context.Context, Object) error {
			mu.Lock()
			defer mu.Unlock()
			if stop {
				for _, t := range held {
					t.Stop()
				}
				held = nil
			}
			for range many / 2 {
				held = append(held, newTicker())
			}
			return nil
		}), nil
	}
}

// nanKeys fills a map with keys that are not equal to themselves and so are never found again.
func nanKeys() Trap {
	return Trap{
		Name: "nan-keys", Row: "S2-08n", Expect: ExpectListed, Grows: Heap,
		Gap:     "alarms by rule heap-growth: what grows so fast is no smaller leak for being made of small things",
		Title:   "a map by a number that is sometimes not a number gets entries that can be neither found nor deleted",
		Culprit: siteOf((*scores).put, ""),
		Leak: func(context.Context, Env) (Work, error) {
			return (&scores{score: math.NaN(), of: map[float64]*[96]byte{}}).work(), nil
		},
		Twin: func(context.Context, Env) (Work, error) {
			return (&scores{of: map[float64]*[96]byte{}}).work(), nil
		},
	}
}

type scores struct {
	mu    sync.Mutex
	score float64
	of    map[float64]*[96]byte
}

func (s *scores) work() Work {
	return onObjects(func(context.Context, Object) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for range many {
			s.put()
		}
		return nil
	})
}

func (s *scores) put() { s.of[s.score] = new([96]byte) }

// contextChain makes a context out of the last one at each rollout and keeps it.
func contextChain() Trap {
	return Trap{
		Name: "context-chain", Row: "S2-11f", Expect: ExpectListed, Grows: Heap,
		Gap:     "alarms by rule heap-growth: what grows so fast is no smaller leak for being made of small things",
		Title:   "ctx = context.WithValue(ctx, …) is kept in a field, so that each rollout makes the chain longer",
		Culprit: siteOf(withName, ""),
		Leak:    chained(false),
		Twin:    chained(true),
	}
}

type nameKey struct{}

func withName(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, nameKey{}, name)
}

func chained(fresh bool) Start {
	return func(life context.Context, _ Env) (Work, error) {
		var mu sync.Mutex
		kept := life
		return onObjects(func(_ context.Context, object Object) error {
			mu.Lock()
			defer mu.Unlock()
			for range 2 * many {
				if fresh {
					kept = life
				}
				kept = withName(kept, object.Name)
			}
			return nil
		}), nil
	}
}

// rateLimited counts failures under ever new keys.
func rateLimited() Trap {
	return Trap{
		Name: "rate-limiter", Row: "X-3", Expect: ExpectListed, Grows: Heap,
		Gap:     "nothing in two minutes: a map of small entries grows by doubling, in steps ever farther apart",
		Title:   "failures of ever new items are counted by a rate limiter that is never told to forget them",
		Culprit: siteOf(failed, ""),
		Leak:    limiting(func(workqueue.TypedRateLimiter[int], int) {}),
		Twin:    limiting(func(l workqueue.TypedRateLimiter[int], item int) { l.Forget(item) }),
	}
}

func limiting(after func(workqueue.TypedRateLimiter[int], int)) Start {
	return func(context.Context, Env) (Work, error) {
		var mu sync.Mutex
		item := 0
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[int](time.Second, time.Hour)
		return onObjects(func(context.Context, Object) error {
			mu.Lock()
			defer mu.Unlock()
			for range 4 * many {
				item++
				failed(limiter, item)
				after(limiter, item)
			}
			return nil
		}), nil
	}
}

func failed(limiter workqueue.TypedRateLimiter[int], item int) { limiter.When(item) }

// longTimeouts are timeouts without a cancel: each stays until its hour is over.
func longTimeouts() Trap {
	return Trap{
		Name: "long-timeouts", Row: "S2-11b", Expect: ExpectListed, Grows: Heap,
		Gap:     "alarms by rule heap-growth: what grows so fast is no smaller leak for being made of small things",
		Title:   "context.WithTimeout of an hour without a cancel: each stays until then",
		Culprit: siteOf(withHour, ""),
		Leak:    withLife(func(life context.Context) { hours(life, func(context.CancelFunc) {}) }),
		Twin:    withLife(func(life context.Context) { hours(life, func(cancel context.CancelFunc) { cancel() }) }),
	}
}

func hours(life context.Context, end func(context.CancelFunc)) {
	for range many / 2 {
		end(withHour(life))
	}
}

func withHour(life context.Context) context.CancelFunc {
	_, cancel := context.WithTimeout(life, time.Hour)
	return cancel
}
