package clientgo

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/leakguard/leakguard/probes"
)

// Queue keeps account of a rate-limited workqueue until it is shut down: that it is, that each item that was got is done,
// and that keys whose retries are over are forgotten. ctx tells the span that made it.
//
// To know whether a worker went on without Done, up to 200 items a second are got 10 to 30 µs slower.
//
// Do not pass controller-runtime's priority queue, which has methods of its own, to it.
func Queue[T comparable](ctx context.Context, x *Resources, q workqueue.TypedRateLimitingInterface[T]) workqueue.TypedRateLimitingInterface[T] {
	site := probes.CallSite(1)
	w := &queue[T]{TypedRateLimitingInterface: q, entry: x.ledger.Open(ctx, &resourceKinds.queue, "", site)}
	w.unfollow = x.follow(&followed{site: site, stats: func() queueStats { return w }})
	return w
}

type queue[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
	entry    *probes.Entry
	unfollow func()
	work     items[T]
	keys     keyCount
}

func (q *queue[T]) items(grace time.Duration) (inWork, lost int64) { return q.work.count(grace) }
func (q *queue[T]) failing() int64                                 { return q.keys.n.Load() }

// Get implements [workqueue.TypedInterface].
func (q *queue[T]) Get() (item T, shutdown bool) {
	item, shutdown = q.TypedRateLimitingInterface.Get()
	if !shutdown {
		q.work.got(item)
	}
	return item, shutdown
}

// Done implements [workqueue.TypedInterface].
func (q *queue[T]) Done(item T) {
	q.work.done(item)
	q.TypedRateLimitingInterface.Done(item)
}

// AddRateLimited implements [workqueue.TypedRateLimitingInterface].
func (q *queue[T]) AddRateLimited(item T) {
	q.keys.around(func() { q.TypedRateLimitingInterface.AddRateLimited(item) }, func() int { return q.NumRequeues(item) })
}

// Forget implements [workqueue.TypedRateLimitingInterface].
func (q *queue[T]) Forget(item T) {
	q.keys.around(func() { q.TypedRateLimitingInterface.Forget(item) }, func() int { return q.NumRequeues(item) })
}

// ShutDown implements [workqueue.TypedInterface].
func (q *queue[T]) ShutDown() {
	q.close()
	q.TypedRateLimitingInterface.ShutDown()
}

// ShutDownWithDrain implements [workqueue.TypedInterface]. The goroutine of a queue's delays ends up to ten seconds later.
func (q *queue[T]) ShutDownWithDrain() {
	q.close()
	q.TypedRateLimitingInterface.ShutDownWithDrain()
}

func (q *queue[T]) close() {
	q.entry.Close()
	q.unfollow()
}

// maxQueues bounds the queues and rate limiters whose items and keys are counted.
const maxQueues = 1024

// queueStats is a queue or a rate limiter that knows its items.
type queueStats interface {
	// items gives how many were got and are not done, and how many of those never will be.
	items(grace time.Duration) (inWork, lost int64)
	// failing is how many keys the rate limiter remembers.
	failing() int64
}

// followed is a queue or a rate limiter under account.
type followed struct {
	site  probes.Site
	scope string            // "" for none
	stats func() queueStats // nil when it is no longer in use
}

// follow counts the items of a queue until unfollow is called.
func (x *Resources) follow(f *followed) (unfollow func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.queues) < maxQueues {
		x.queues[f] = true
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.queues, f)
	}
}

// queueKeysClimb is the least number of keys that a rate limiter must remember, and more than there are live objects, to be
// too many when they climb: in an outage all objects fail.
const queueKeysClimb = 1000

// queuesOf is whose queues are counted together.
type queuesOf struct {
	site  uint64
	scope string
}

// queueTotals sums the queues of one site and scope.
type queueTotals struct {
	*followed
	inWork, lost, failing int64
}

// Read implements [probes.Probe].
func (x *Resources) Read(ctx context.Context, dst []probes.Reading) []probes.Reading {
	dst = x.ledger.Read(ctx, dst)
	for key, t := range x.totals() {
		dst = x.queueReadings(dst, key, t)
	}
	x.climb.EndRound()
	return dst
}

// totals sums the queues, and forgets those that are no longer in use.
func (x *Resources) totals() map[queuesOf]*queueTotals {
	grace := x.ledger.Options().Grace
	totals := map[queuesOf]*queueTotals{}
	x.mu.Lock()
	defer x.mu.Unlock()
	for f := range x.queues {
		stats := f.stats()
		if stats == nil {
			delete(x.queues, f)
			continue
		}
		key := queuesOf{f.site.ID(), f.scope}
		t := totals[key]
		if t == nil {
			t = &queueTotals{followed: f}
			totals[key] = t
		}
		inWork, lost := stats.items(grace)
		t.inWork += inWork
		t.lost += lost
		t.failing += stats.failing()
	}
	return totals
}

// queueReadings judges the queues of one site.
func (x *Resources) queueReadings(dst []probes.Reading, key queuesOf, t *queueTotals) []probes.Reading {
	losing := x.climb.Observe(fmt.Sprint("lost ", key), int(t.lost)) >= probes.Repeating
	failing := x.climb.Observe(fmt.Sprint("keys ", key), int(t.failing)) >= probes.Climbing
	live := x.live(t.scope)
	r := probes.Reading{Scope: t.scope, Covariate: live, Culprit: t.site.Culprit(x.ledger.Options().MainModule), Stack: t.site.Frames()}
	if t.inWork > 0 {
		dst = append(dst, probes.Reading{Resource: "workqueue items in work", Scope: t.scope, Count: float64(t.inWork), Covariate: live, Culprit: r.Culprit})
	}
	if t.lost > 0 {
		r.Resource, r.Count, r.Leaked, r.Trap = "items never done", float64(t.lost), losing && t.lost >= itemsLost, "X-2"
		r.Reason = fmt.Sprintf("%d items were got from the queue and are not done, though those who got them went on to others long ago: they are never handed out again", t.lost)
		r.Advice = "call Done for every item, by defer right after Get"
		dst = append(dst, r)
	}
	if t.failing > 0 {
		r.Resource, r.Count, r.Trap = "rate-limited keys not forgotten", float64(t.failing), "X-3"
		r.Climbing = failing && t.failing >= queueKeysClimb && float64(t.failing) > live && t.scope == ""
		r.Reason = fmt.Sprintf("the rate limiter remembers %d keys and their number only grows", t.failing)
		r.Advice = "call Forget when a key's work is over, also when it failed for good"
		dst = append(dst, r)
	}
	return dst
}

// live is how many objects a scope has, or all scopes together if that is unknown; -1 for unknown.
func (x *Resources) live(scope string) float64 {
	objects := x.ledger.Options().Objects
	if objects == nil {
		return -1
	}
	n, ok := objects.Live(scope)
	if !ok {
		n = objects.Total()
	}
	return cmp.Or(float64(n), -1)
}
