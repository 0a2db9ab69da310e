package probes

import (
	"context"
	"runtime/pprof"
)

// Span is one piece of work in a scope. The zero Span ends without effect. Four words are kept in registers; with six, a
// span of low cardinality takes a third longer.
type Span struct {
	shared *spanContext // with low cardinality alone: it knows the epoch and the labels to restore
	scope  *Scope       // nil with low cardinality
	slot   int
	seq    uint64
}

// label puts a span's labels on the calling goroutine and into a context.
func (sc *Scope) label(ctx context.Context, id SpanID) context.Context {
	labelled := pprof.WithLabels(ctx, pprof.Labels(LabelController, sc.name, LabelReconcile, id.String()))
	pprof.SetGoroutineLabels(labelled)
	return labelled
}

// End closes the span and gives the goroutine the labels of the context that Begin was given. It must be called once.
func (s Span) End() {
	switch {
	case s.shared != nil:
		s.shared.epoch.ended.Add(1)
		pprof.SetGoroutineLabels(s.shared.Context)
	case s.scope != nil:
		if ended := s.scope.release(s.slot, s.seq); ended.outer != nil {
			pprof.SetGoroutineLabels(ended.outer)
		}
	}
}

// take puts a span into a free slot of the table and gives its number.
func (sc *Scope) take(span openSpan) (slot int) {
	sc.mu.Lock()
	slot = sc.free
	if slot < len(sc.slots) {
		sc.free = sc.slots[slot].next
		sc.slots[slot] = span
	} else {
		sc.slots = append(sc.slots, span)
		sc.free = len(sc.slots)
	}
	sc.begun++
	sc.mu.Unlock()
	return slot
}

// release frees the slot of a span and gives what was in it; a second time it does nothing and gives the zero openSpan.
func (sc *Scope) release(slot int, seq uint64) (ended openSpan) {
	sc.mu.Lock()
	if s := &sc.slots[slot]; s.id.Seq == seq {
		ended = *s
		*s = openSpan{next: sc.free}
		sc.free = slot
		sc.ended++
	}
	sc.mu.Unlock()
	return ended
}

// FromContext gives the scope's name and the span that a context was begun with; ok is false for a context of no span.
func FromContext(ctx context.Context) (scope string, id SpanID, ok bool) {
	value, ok := pprof.Label(ctx, LabelReconcile)
	if !ok {
		return "", SpanID{}, false
	}
	id, ok = ParseSpanID(value)
	if !ok {
		return "", SpanID{}, false
	}
	scope, _ = pprof.Label(ctx, LabelController)
	return scope, id, true
}

// Do runs f as a span of the scope without an object: user-defined work that must leave no goroutine behind. A panic of
// f ends the span and goes on.
func (sc *Scope) Do(ctx context.Context, f func(ctx context.Context)) {
	ctx, span := sc.Begin(ctx, 0)
	defer span.End()
	f(ctx)
}
