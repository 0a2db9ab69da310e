package clientgo

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leakguard/leakguard/probes"
)

// How often the calls of a handler are timed. Reading the clock twice takes 100 ns and more, most of what an event may cost.
const (
	// timedEvery is of how many quick calls one is timed; it stands for the others.
	timedEvery = 32
	// timedFirst is how many calls are all timed, so that the time of a handler with few is exact.
	timedFirst = 64
	// slowCall is how long a call takes after which all are timed, until one is quick again.
	slowCall = 10 * time.Microsecond
)

// stopwatch adds up the time that a handler's calls take: exactly while they are slow, as an estimate while they are quick. All
// methods but total belong to the goroutine that makes the calls, one at a time.
type stopwatch struct {
	start  time.Time     // when the handler was made
	began  time.Duration // the call that runs now, since start
	stands int64         // for how many calls that one stands; 0 when it is not timed
	quick  atomic.Bool   // the last one that was timed was
	sum    atomic.Int64
}

// begin is told which call it is, the calls of its handler, which is odd.
func (s *stopwatch) begin(calls uint64) {
	if calls&(2*timedEvery-1) == 1 || calls < 2*timedFirst || !s.quick.Load() {
		s.time(calls)
	}
}

func (s *stopwatch) time(calls uint64) {
	s.stands = timedEvery
	if calls < 2*timedFirst || !s.quick.Load() {
		s.stands = 1
	}
	s.began = time.Since(s.start)
}

func (s *stopwatch) end() {
	if s.stands != 0 {
		s.stop()
	}
}

func (s *stopwatch) stop() {
	took := time.Since(s.start) - s.began
	s.sum.Add(s.stands * int64(took))
	s.stands = 0
	s.quick.Store(took < slowCall)
}

// total is about how long all calls have taken that have returned.
func (s *stopwatch) total() time.Duration { return time.Duration(s.sum.Load()) }

// timeReadings gives how long each handler has worked since it was added, and how many notifications wait for it: those that
// worked most, to be looked at. That a handler does not keep up is judged by other readings.
func (x *Informers) timeReadings(dst []probes.Reading, running []*informer) []probes.Reading {
	var all []*handler
	for _, i := range running {
		all = append(all, i.list()...)
	}
	slices.SortFunc(all, func(a, b *handler) int {
		return cmp.Or(cmp.Compare(b.spent.total(), a.spent.total()), cmp.Compare(a.kind, b.kind), cmp.Compare(a.site.ID(), b.site.ID()))
	})
	for _, h := range all[:min(len(all), maxReadings)] {
		if h.calls.Load()%2 == 1 { // it is at work more often than not, or just now
			h.spent.quick.Store(false)
		}
		r := probes.Reading{
			Resource: "seconds in event handlers of " + shortKind(h.kind), Count: h.spent.total().Seconds(), Covariate: -1, Shown: true, Culprit: h.blamed(),
		}
		dst = append(dst, r)
		if n, ok := h.pending(); ok {
			r.Resource, r.Count = "notifications waiting for event handlers of "+shortKind(h.kind), float64(n)
			dst = append(dst, r)
		}
	}
	return dst
}
