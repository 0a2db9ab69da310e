package clientgo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"

	"github.com/leakguard/leakguard/probes"
)

// Queue keeps account of a rate-limited workqueue until it is shut down: that it is, that each item that was got is done,
// and that keys whose retries are over are forgotten. ctx tells the span that made it.
//
// Do not pass controller-runtime's priority queue, which has methods of its own, to it.
func Queue[T comparable](ctx context.Context, x *Resources, q workqueue.TypedRateLimitingInterface[T]) workqueue.TypedRateLimitingInterface[T] {
	site := probes.CallSite(1)
	w := &queue[T]{TypedRateLimitingInterface: q, set: x, entry: x.ledger.Open(ctx, &resourceKinds.queue, "", site)}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.queues) < maxQueues {
		x.queues[w] = site
	}
	return w
}

// maxQueues bounds the queues whose items are counted.
const maxQueues = 1024

type queue[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
	set   *Resources
	entry *probes.Entry
	got   atomic.Int64
	keys  atomic.Int64
	limit sync.Mutex // makes the look-ups around the rate limiter one step
}

func (q *queue[T]) inWork() int64  { return q.got.Load() }
func (q *queue[T]) failing() int64 { return q.keys.Load() }

// Get implements [workqueue.TypedInterface].
func (q *queue[T]) Get() (item T, shutdown bool) {
	item, shutdown = q.TypedRateLimitingInterface.Get()
	if !shutdown {
		q.got.Add(1)
	}
	return item, shutdown
}

// Done implements [workqueue.TypedInterface].
func (q *queue[T]) Done(item T) {
	q.got.Add(-1)
	q.TypedRateLimitingInterface.Done(item)
}

// AddRateLimited implements [workqueue.TypedRateLimitingInterface].
func (q *queue[T]) AddRateLimited(item T) {
	q.limit.Lock()
	defer q.limit.Unlock()
	before := q.NumRequeues(item)
	q.TypedRateLimitingInterface.AddRateLimited(item)
	if before == 0 && q.NumRequeues(item) > 0 {
		q.keys.Add(1)
	}
}

// Forget implements [workqueue.TypedRateLimitingInterface].
func (q *queue[T]) Forget(item T) {
	q.limit.Lock()
	defer q.limit.Unlock()
	if q.NumRequeues(item) > 0 {
		q.keys.Add(-1)
	}
	q.TypedRateLimitingInterface.Forget(item)
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
	q.set.mu.Lock()
	defer q.set.mu.Unlock()
	delete(q.set.queues, q)
}

// queueKeysLeaked is the least number of keys a rate limiter must remember, when they climb, to be called leaked.
const queueKeysLeaked = 1000

// queueTotals sums the queues of one site.
type queueTotals struct {
	site            probes.Site
	inWork, failing int64
}

// Read implements [probes.Probe].
func (x *Resources) Read(ctx context.Context, dst []probes.Reading) []probes.Reading {
	dst = x.ledger.Read(ctx, dst)
	totals := map[uint64]*queueTotals{}
	x.mu.Lock()
	for q, site := range x.queues {
		t := totals[site.ID()]
		if t == nil {
			t = &queueTotals{site: site}
			totals[site.ID()] = t
		}
		t.inWork += q.inWork()
		t.failing += q.failing()
	}
	x.mu.Unlock()
	for id, t := range totals {
		dst = x.queueReadings(dst, id, t)
	}
	x.climb.EndRound()
	return dst
}

// queueReadings judges the queues of one site.
func (x *Resources) queueReadings(dst []probes.Reading, id uint64, t *queueTotals) []probes.Reading {
	working := x.climb.Observe(fmt.Sprint("work ", id), int(t.inWork)) >= probes.Climbing
	failing := x.climb.Observe(fmt.Sprint("keys ", id), int(t.failing)) >= probes.Climbing
	if t.inWork > 0 {
		dst = append(dst, probes.Reading{
			Resource: "items never done", Count: float64(t.inWork), Covariate: -1, Leaked: working && t.inWork > maxWorkers,
			Culprit: t.site.Culprit(x.ledger.MainModule()), Stack: t.site.Frames(),
			Reason: fmt.Sprintf("%d items were got from the queue and are not done: they are never handed out again", t.inWork),
			Advice: "call Done for every item, by defer right after Get",
		})
	}
	if t.failing > 0 {
		dst = append(dst, probes.Reading{
			Resource: "rate-limited keys never forgotten", Count: float64(t.failing), Covariate: -1, Leaked: failing && t.failing >= queueKeysLeaked,
			Culprit: t.site.Culprit(x.ledger.MainModule()), Stack: t.site.Frames(), Trap: "X-3",
			Reason: fmt.Sprintf("the rate limiter remembers %d keys and their number only grows", t.failing),
			Advice: "call Forget when a key's work is over, also when it failed for good",
		})
	}
	return dst
}

// maxWorkers is more items in work at once than any controller has workers.
const maxWorkers = 256
