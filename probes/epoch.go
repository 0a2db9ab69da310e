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

// closedEpoch is the bit of an epoch's begun that says it takes in no more spans.
const closedEpoch = 1 << 63

// epoch is all spans of a scope that began within a short time and share one set of labels. A span costs it two
// additions and no lock.
type epoch struct {
	id     SpanID
	since  time.Duration
	labels context.Context //nolint:containedctx // the labels exist in no other form; it descends from Background
	quick  context.Context //nolint:containedctx // the same for pprof.SetGoroutineLabels alone
	shared spanContext     // that of BeginShared, which gives no context and leaves no labels
	begun  atomic.Uint64   // with closedEpoch; for a moment one more when a span comes too late
	ended  atomic.Uint64
}

// counts gives how many spans have begun in the epoch and ended, and whether it takes in new ones. It reads ended first,
// so that begun is not below it, and the same only when no span was open in between.
func (e *epoch) counts() (begun, ended uint64, taking bool) {
	ended = e.ended.Load()
	begun = e.begun.Load()
	return begun &^ closedEpoch, ended, begun < closedEpoch
}

// inFlight reports whether a goroutine with the epoch's label may still be at its span's work.
func (e *epoch) inFlight() bool {
	begun, ended, taking := e.counts()
	return begun > ended || (taking && begun > 0)
}

// enter adds an open span, unless the epoch takes in no more.
func (e *epoch) enter() bool {
	if e.begun.Add(1) < closedEpoch {
		return true
	}
	e.begun.Add(^uint64(0))
	return false
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

// quickContext answers whatever it is asked with one set of labels, so that a goroutine gets them in two thirds of the
// time. Nobody else is given it.
type quickContext struct {
	context.Context //nolint:containedctx // it is a context
	labels          any
}

// Value implements [context.Context].
func (c *quickContext) Value(any) any { return c.labels }

// keyContext notes what it is asked for.
type keyContext struct {
	context.Context //nolint:containedctx // it is a context
	key             any
}

// Value implements [context.Context].
func (c *keyContext) Value(key any) any {
	c.key = key
	return nil
}

// quickLabels gives a quickContext with the labels of a context, or that itself should runtime/pprof keep them elsewhere
// than in a context's value one day.
func quickLabels(labels context.Context) context.Context {
	asked := &keyContext{Context: context.Background()}
	_, _ = pprof.Label(asked, "")
	if asked.key == nil {
		return labels
	}
	return &quickContext{labels, labels.Value(asked.key)}
}

// BeginShared opens a span of the scope with low cardinality, whatever [Scopes.SetLowCardinality] says, for calls that are too
// short and too many for a label each, such as those of an event handler. It labels the calling goroutine and allocates
// nothing. [Span.End], once on the same goroutine, takes all labels off it.
func (sc *Scope) BeginShared() Span {
	e := sc.epoch.Load()
	for e == nil || !e.enter() {
		sc.shared.Store(true)
		e = sc.newEpoch(e)
	}
	pprof.SetGoroutineLabels(e.quick)
	return Span{shared: &e.shared}
}

// newEpoch puts a new epoch in the place of old, unless another goroutine has done so, and gives the one that is there.
func (sc *Scope) newEpoch(old *epoch) *epoch {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if e := sc.epoch.Load(); e != old {
		return e
	}
	e := &epoch{id: sc.nextID(0), since: time.Since(sc.set.start)}
	e.labels = pprof.WithLabels(context.Background(), pprof.Labels(LabelController, sc.name, LabelReconcile, e.id.String()))
	e.quick = quickLabels(e.labels)
	e.shared = spanContext{unlabelled, e}
	sc.epochs = append(sc.epochs, e)
	sc.epoch.Store(e)
	return e
}

// rotateLocked closes the epoch that takes in new spans when it is old enough and has been used, and forgets the closed
// ones without an open span: none can come after that.
func (sc *Scope) rotateLocked(now time.Duration) {
	sc.epochs = slices.DeleteFunc(sc.epochs, func(e *epoch) bool {
		if begun, _, taking := e.counts(); taking && begun > 0 && now-e.since >= epochAge {
			e.begun.Or(closedEpoch)
		}
		begun, ended, taking := e.counts()
		if taking || begun > ended {
			return false
		}
		sc.begun += begun
		sc.ended += ended
		return true
	})
}
