package probes

import (
	"context"
	"hash/maphash"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Scopes is a set of named scopes and of the spans that are open in them. Goroutine labels belong to the process, so a
// process needs one Scopes.
type Scopes struct {
	seed maphash.Seed
	seq  atomic.Uint64

	mu     sync.Mutex
	scopes map[string]*Scope
}

// NewScopes gives an empty set. Span numbers start from the current time, so that labels of two sets in one process do
// not meet.
func NewScopes() *Scopes {
	s := &Scopes{seed: maphash.MakeSeed(), scopes: map[string]*Scope{}}
	s.seq.Store(uint64(time.Now().UnixMilli())) //nolint:gosec // the clock is after 1970
	return s
}

// Scope gives the scope with this name, a new one at the first call. There is no bound on names: use it for controllers
// and handlers, not for objects.
func (s *Scopes) Scope(name string) *Scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.scopes[name]
	if sc == nil {
		sc = &Scope{set: s, name: name, open: map[uint64]Open{}}
		s.scopes[name] = sc
	}
	return sc
}

// Object gives the hash of a namespaced name, the same as [HashObject] gives for it within this set.
func (s *Scopes) Object(namespace, name string) Object {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.WriteString(namespace) // never fails
	_ = h.WriteByte('/')
	_, _ = h.WriteString(name)
	return Object(h.Sum64())
}

// HashObject gives the hash of any comparable request, for scopes whose objects have no namespaced name.
func HashObject[T comparable](s *Scopes, request T) Object {
	return Object(maphash.Comparable(s.seed, request))
}

// Open is a span that has begun and not ended.
type Open struct {
	// Scope is the name of its scope.
	Scope string
	// ID is the span.
	ID SpanID
	// Since is when it began.
	Since time.Time
}

// InFlight appends all open spans to dst, ordered by ID.Seq, and returns it. It locks each scope for the time of a copy.
func (s *Scopes) InFlight(dst []Open) []Open {
	s.mu.Lock()
	scopes := make([]*Scope, 0, len(s.scopes))
	for _, sc := range s.scopes {
		scopes = append(scopes, sc)
	}
	s.mu.Unlock()
	start := len(dst)
	for _, sc := range scopes {
		dst = sc.appendOpen(dst)
	}
	slices.SortFunc(dst[start:], func(a, b Open) int {
		if a.ID.Seq < b.ID.Seq {
			return -1
		}
		return 1
	})
	return dst
}

// Stats appends one entry for each scope to dst, ordered by name, and returns it.
func (s *Scopes) Stats(dst []ScopeStats) []ScopeStats {
	s.mu.Lock()
	scopes := make([]*Scope, 0, len(s.scopes))
	for _, sc := range s.scopes {
		scopes = append(scopes, sc)
	}
	s.mu.Unlock()
	start := len(dst)
	for _, sc := range scopes {
		dst = append(dst, sc.Stats())
	}
	slices.SortFunc(dst[start:], func(a, b ScopeStats) int { return strings.Compare(a.Scope, b.Scope) })
	return dst
}

// ScopeStats counts the spans of a scope since the process started.
type ScopeStats struct {
	// Scope is its name.
	Scope string `json:"scope"`
	// Begun and Ended count spans; Begun − Ended are in flight.
	Begun uint64 `json:"begun"`
	Ended uint64 `json:"ended"`
}

// Scope is work of one name, such as the reconciles of one controller.
type Scope struct {
	set   *Scopes
	name  string
	begun atomic.Uint64
	ended atomic.Uint64

	mu   sync.Mutex
	open map[uint64]Open
}

// Name is the scope's name.
func (sc *Scope) Name() string { return sc.name }

// Object is [Scopes.Object] of the scope's set.
func (sc *Scope) Object(namespace, name string) Object { return sc.set.Object(namespace, name) }

// Set is the set the scope belongs to.
func (sc *Scope) Set() *Scopes { return sc.set }

// Stats counts the scope's spans.
func (sc *Scope) Stats() ScopeStats {
	return ScopeStats{Scope: sc.name, Begun: sc.begun.Load(), Ended: sc.ended.Load()}
}

func (sc *Scope) appendOpen(dst []Open) []Open {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for _, o := range sc.open {
		dst = append(dst, o)
	}
	return dst
}

// Begin opens a span: it labels the calling goroutine, whose new goroutines inherit the labels, and gives a context that
// carries them. The caller must call [Span.End] on the same goroutine, by defer, so that a panic ends it too.
func (sc *Scope) Begin(ctx context.Context, object Object) (context.Context, Span) {
	id := SpanID{Seq: sc.set.seq.Add(1), Object: object}
	sc.begun.Add(1)
	sc.mu.Lock()
	sc.open[id.Seq] = Open{Scope: sc.name, ID: id, Since: time.Now()}
	sc.mu.Unlock()
	labelled := pprof.WithLabels(ctx, pprof.Labels(LabelController, sc.name, LabelReconcile, id.String()))
	pprof.SetGoroutineLabels(labelled)
	return labelled, Span{scope: sc, seq: id.Seq, outer: ctx}
}

// Span is one piece of work in a scope. The zero Span ends without effect.
type Span struct {
	scope *Scope
	seq   uint64
	outer context.Context //nolint:containedctx // the labels to restore live in it; a Span lives for one call
}

// End closes the span and gives the goroutine the labels of the context that Begin was given.
func (s Span) End() {
	if s.scope == nil {
		return
	}
	s.scope.mu.Lock()
	delete(s.scope.open, s.seq)
	s.scope.mu.Unlock()
	s.scope.ended.Add(1)
	pprof.SetGoroutineLabels(s.outer)
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
