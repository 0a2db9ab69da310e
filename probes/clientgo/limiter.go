package clientgo

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"k8s.io/client-go/util/workqueue"

	"github.com/leakguard/leakguard/probes"
)

// RateLimiter keeps account of how many keys a rate limiter remembers, for as long as the result is in use. scope is the
// controller whose queue it is for. While the API server is away each object may fail, so their number is a reading beside that of
// the live objects, and never called leaked. It is for a limiter that goes into controller.Options; a queue of [Queue] counts its
// own keys.
//
// A call costs two look-ups more.
func RateLimiter[T comparable](x *Resources, scope string, l workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimiter[T] {
	w := &limiter[T]{TypedRateLimiter: l}
	ref := weak.Make(w)
	x.follow(&followed{site: probes.CallSite(1), scope: scope, stats: func() queueStats {
		if l := ref.Value(); l != nil {
			return l
		}
		return nil
	}})
	return w
}

type limiter[T comparable] struct {
	workqueue.TypedRateLimiter[T]
	keys keyCount
}

func (l *limiter[T]) items(time.Duration) (inWork, lost int64) { return 0, 0 }
func (l *limiter[T]) failing() int64                           { return l.keys.n.Load() }

// When implements [workqueue.TypedRateLimiter].
func (l *limiter[T]) When(item T) (delay time.Duration) {
	l.keys.around(func() { delay = l.TypedRateLimiter.When(item) }, func() int { return l.NumRequeues(item) })
	return delay
}

// Forget implements [workqueue.TypedRateLimiter].
func (l *limiter[T]) Forget(item T) {
	l.keys.around(func() { l.TypedRateLimiter.Forget(item) }, func() int { return l.NumRequeues(item) })
}

// keyCount is how many keys a rate limiter remembers.
type keyCount struct {
	n  atomic.Int64
	mu sync.Mutex // makes the look-ups around a call one step
}

// around does what may make the limiter remember or forget one key, with the number of whose failures it counts.
func (k *keyCount) around(do func(), failures func() int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := failures() > 0
	do()
	switch after := failures() > 0; {
	case after && !before:
		k.n.Add(1)
	case before && !after:
		k.n.Add(-1)
	}
}
