package traps

import (
	"context"
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/workqueue"
)

// The leaks of this file leave some hundred bytes at a time, which is worth a line and no alarm for as long as they have not come to
// more than 16 MiB. Where leakguard's intervals are shortened, as many more are made as fit into them.
const (
	smallLeak   = 5600 // bytes that a rollout leaves behind in an operator with the intervals of the library
	usualScale  = 0.05 // of a run that is over in minutes
	smallLeaves = smallLeak / usualScale / 2
)

// some gives how many things of so many bytes a rollout makes.
func (e Env) some(size int) int {
	scale := e.Scale
	if scale == 0 {
		scale = 1
	}
	return max(1, int(smallLeak/scale)/size)
}

// heldTickers keeps tickers in a slice, which needs no goroutine.
func heldTickers() Trap {
	return Trap{
		Name: "held-tickers", Row: "S1-14d", Expect: ExpectListed, Grows: Heap, Leaves: smallLeaves,
		Title:   "tickers are kept in a list that is never cut",
		Culprit: siteOf(newTicker, ""),
		Leak:    withTickers(false),
		Twin:    withTickers(true),
	}
}

// tickerSize is what a ticker takes, with its channel.
const tickerSize = 250

func newTicker() *time.Ticker { return time.NewTicker(time.Hour) }

func withTickers(stop bool) Start {
	return func(_ context.Context, env Env) (Work, error) {
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
			for range env.some(tickerSize) {
				held = append(held, newTicker())
			}
			return nil
		}), nil
	}
}

// nanKeys fills a map with keys that are not equal to themselves and so are never found again.
func nanKeys() Trap {
	return Trap{
		Name: "nan-keys", Row: "S2-08n", Expect: ExpectListed, Grows: Heap, Leaves: smallLeaves,
		Title:   "a map by a number that is sometimes not a number gets entries that can be neither found nor deleted",
		Culprit: siteOf((*scores).put, ""),
		Leak: func(_ context.Context, env Env) (Work, error) {
			return (&scores{score: math.NaN(), of: map[float64]*entry{}}).work(env), nil
		},
		Twin: func(_ context.Context, env Env) (Work, error) {
			return (&scores{of: map[float64]*entry{}}).work(env), nil
		},
	}
}

// entry is what the map keeps, which takes as much again as a quarter of it for the key.
type entry [224]byte

type scores struct {
	mu    sync.Mutex
	score float64
	of    map[float64]*entry
}

func (s *scores) work(env Env) Work {
	return onObjects(func(context.Context, Object) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for range env.some(len(entry{}) * 5 / 4) {
			s.put()
		}
		return nil
	})
}

func (s *scores) put() { s.of[s.score] = new(entry) }

// contextChain makes a context out of the last one at each rollout and keeps it.
func contextChain() Trap {
	return Trap{
		Name: "context-chain", Row: "S2-11f", Expect: ExpectListed, Grows: Heap, Leaves: smallLeaves,
		Title:   "ctx = context.WithValue(ctx, …) is kept in a field, so that each rollout makes the chain longer",
		Culprit: siteOf(withName, ""),
		Leak:    chained(false),
		Twin:    chained(true),
	}
}

type nameKey struct{}

// linkSize is what a context with a name takes.
const linkSize = 64

func withName(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, nameKey{}, name)
}

func chained(fresh bool) Start {
	return func(life context.Context, env Env) (Work, error) {
		var mu sync.Mutex
		kept := life
		return onObjects(func(_ context.Context, object Object) error {
			mu.Lock()
			defer mu.Unlock()
			for range env.some(linkSize) {
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
		Name: "rate-limiter", Row: "X-3", Expect: ExpectListed, Grows: Heap, Leaves: smallLeaves,
		Title:   "failures of ever new items are counted by a rate limiter that is never told to forget them",
		Culprit: siteOf(failed, ""),
		Leak:    limiting(false),
		Twin:    limiting(true),
	}
}

// itemSize is what the limiter takes for an item, with the item.
const itemSize = 224

// image is a part of each item, as long as such names are.
const image = "registry.example/team/web@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func limiting(forget bool) Start {
	return func(_ context.Context, env Env) (Work, error) {
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Hour)
		return onObjects(func(_ context.Context, object Object) error {
			for range env.some(itemSize) {
				if item := failed(limiter, object); forget {
					limiter.Forget(item)
				}
			}
			return nil
		}), nil
	}
}

// failed counts a failure of a new Pod of an object to pull its image. The item is a string of its own, as those of real queues are.
func failed(limiter workqueue.TypedRateLimiter[string], object Object) (item string) {
	item = object.Namespace + "/" + object.Name + "/" + string(uuid.NewUUID()) + "/" + image
	limiter.When(item)
	return item
}

// longTimeouts are timeouts without a cancel: each stays until its hour is over.
func longTimeouts() Trap {
	return Trap{
		Name: "long-timeouts", Row: "S2-11b", Expect: ExpectListed, Grows: Heap, Leaves: smallLeaves,
		Title:   "context.WithTimeout of an hour without a cancel: each stays until then",
		Culprit: siteOf(withHour, ""),
		Leak:    hours(false),
		Twin:    hours(true),
	}
}

// timeoutSize is what a context with a timeout takes, with its timer and its place among the children of its parent.
const timeoutSize = 320

func hours(end bool) Start {
	return func(life context.Context, env Env) (Work, error) {
		return onObjects(func(context.Context, Object) error {
			for range env.some(timeoutSize) {
				if cancel := withHour(life); end {
					cancel()
				}
			}
			return nil
		}), nil
	}
}

func withHour(life context.Context) context.CancelFunc {
	_, cancel := context.WithTimeout(life, time.Hour)
	return cancel
}
