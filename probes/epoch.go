package probes

import (
	"context"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"time"
)

// epochAge is how long an epoch takes in new spans at least, however often [Scopes.InFlight] is called.
const epochAge = time.Second

// maxEpochSpans bounds the spans of one epoch, so that its counts fit their halves of a word.
const maxEpochSpans = 1 << 20

// begunOne is one more span in the upper half of an epoch's state; the lower half counts the open ones.
const begunOne = 1 << 32

// epoch is all spans of a scope that began within a short time and share one set of labels.
type epoch struct {
	id     SpanID
	since  time.Duration
	labels context.Context //nolint:containedctx // the labels exist in no other form; it descends from Background
	state  atomic.Uint64   // begun in the upper half; open, and 1 while it takes in new spans, in the lower half
	closed atomic.Bool     // takes in no more
}

// counts gives how many spans have begun in the epoch and how many of them are open.
func (e *epoch) counts() (begun, open uint64, taking bool) {
	v, taking := e.state.Load(), !e.closed.Load()
	begun, open = v/begunOne, v%begunOne
	if taking && open > 0 {
		open--
	}
	return begun, min(open, begun), taking
}

// inFlight reports whether a goroutine with the epoch's label may still be at its span's work.
func (e *epoch) inFlight() bool {
	begun, open, taking := e.counts()
	return open > 0 || (taking && begun > 0)
}

// enter adds an open span, unless the epoch takes in no more. One that is closed at the same time may still do so.
func (e *epoch) enter() (begun uint64, ok bool) {
	for !e.closed.Load() {
		v := e.state.Load()
		if v%begunOne == 0 {
			return 0, false
		}
		if e.state.CompareAndSwap(v, v+begunOne+1) {
			return v/begunOne + 1, true
		}
	}
	return 0, false
}

// spanContext is the context of a span, whose labels are those of its epoch. They are asked for first, so that the
// user's own [pprof.Do] with a context that descends from it keeps them.
type spanContext struct {
	context.Context //nolint:containedctx // it is a context
	epoch           *epoch
}

// Value implements [context.Context].
func (c *spanContext) Value(key any) any {
	if v := c.epoch.labels.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// beginLow is Begin with low cardinality.
func (sc *Scope) beginLow(ctx context.Context) (context.Context, Span) {
	for {
		e := sc.epoch.Load()
		if e != nil {
			if begun, ok := e.enter(); ok {
				if begun >= maxEpochSpans {
					sc.retire(e)
				}
				pprof.SetGoroutineLabels(e.labels)
				return &spanContext{ctx, e}, Span{scope: sc, epoch: e, outer: ctx}
			}
		}
		sc.newEpoch(e)
	}
}

// newEpoch puts a new epoch in the place of old, unless another goroutine has done so.
func (sc *Scope) newEpoch(old *epoch) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.epoch.Load() != old {
		return
	}
	e := &epoch{id: sc.nextID(0), since: time.Since(sc.set.start)}
	e.labels = pprof.WithLabels(context.Background(), pprof.Labels(LabelController, sc.name, LabelReconcile, e.id.String()))
	e.state.Store(1)
	sc.epochs = append(sc.epochs, e)
	sc.epoch.Store(e)
}

// rotate retires the epoch that takes in new spans when it is old enough and has been used.
func (sc *Scope) rotate(now time.Duration) {
	e := sc.epoch.Load()
	if e == nil || now-e.since < epochAge {
		return
	}
	if begun, _, _ := e.counts(); begun > 0 {
		sc.retire(e)
	}
}

// retire closes an epoch to new spans.
func (sc *Scope) retire(e *epoch) {
	if e.closed.CompareAndSwap(false, true) {
		sc.leave(e)
	}
}

// leave takes one off the epoch's open spans and forgets the epoch with the last one.
func (sc *Scope) leave(e *epoch) {
	if e.state.Add(^uint64(0))%begunOne != 0 {
		return
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	i := slices.Index(sc.epochs, e)
	if i < 0 {
		return
	}
	sc.epochs = slices.Delete(sc.epochs, i, i+1)
	begun := e.state.Load() / begunOne
	sc.begun.Add(begun)
	sc.ended.Add(begun)
}
