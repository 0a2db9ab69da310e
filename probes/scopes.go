package probes

import (
	"cmp"
	"context"
	"hash/maphash"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Scopes is a set of named scopes and of the spans that are open in them. Goroutine labels belong to the process, so a
// process needs one Scopes.
type Scopes struct {
	seed  maphash.Seed
	start time.Time
	seq   atomic.Uint64
	low   atomic.Bool

	mu     sync.Mutex
	scopes map[string]*Scope
	claims map[string][]string // scopes by function, see Claim
}

// NewScopes gives an empty set. Span numbers start from the current time, so that labels of two sets in one process do
// not meet.
func NewScopes() *Scopes {
	s := &Scopes{seed: maphash.MakeSeed(), start: time.Now(), scopes: map[string]*Scope{}, claims: map[string][]string{}}
	s.seq.Store(uint64(s.start.UnixMilli())) //nolint:gosec // the clock is after 1970
	return s
}

// SetLowCardinality chooses what the spans that begin from now on are labelled with. By default each has a label of its
// own. With low cardinality the spans of a scope share one for about a second or until the next [Scopes.InFlight], which
// suits continuous profilers, costs a fifth, and loses two things: a goroutine tells its controller but not its
// reconcile's object, and one long reconcile keeps all that began with it undecided.
func (s *Scopes) SetLowCardinality(on bool) { s.low.Store(on) }

// Scope gives the scope with this name, a new one at the first call. There is no bound on names: use it for controllers
// and handlers, not for objects.
func (s *Scopes) Scope(name string) *Scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.scopes[name]
	if sc == nil {
		sc = &Scope{set: s, name: name}
		s.scopes[name] = sc
	}
	return sc
}

// Object gives the hash of a namespaced name, which is never 0.
func (s *Scopes) Object(namespace, name string) Object {
	return nonZero(maphash.Comparable(s.seed, [2]string{namespace, name}))
}

// HashObject gives the hash of any comparable request, for scopes whose objects have no namespaced name. It is never 0,
// and not always what [Scopes.Object] gives for a request that is a namespaced name.
func HashObject[T comparable](s *Scopes, request T) Object {
	return nonZero(maphash.Comparable(s.seed, request))
}

// nonZero keeps 48 bits of a hash: fewer digits in each label, and two of 10,000 objects meet once in five million processes.
func nonZero(hash uint64) Object { return Object(max(hash>>16, 1)) }

// Open is a span that has begun and not ended, or an epoch with such spans.
type Open struct {
	// Scope is the name of its scope.
	Scope string
	// ID is the span.
	ID SpanID
	// Since is when it began.
	Since time.Time
}

// InFlight appends all open spans to dst, ordered by ID.Seq, and returns it. It locks each scope for the time of a copy.
// With low cardinality it also closes the epochs that are older than a second to new spans.
func (s *Scopes) InFlight(dst []Open) []Open {
	return s.open(dst, time.Since(s.start))
}

// open is InFlight at a time since the start; at 0 no epoch is old enough to be closed.
func (s *Scopes) open(dst []Open, now time.Duration) []Open {
	start := len(dst)
	for _, sc := range s.all() {
		dst = sc.appendOpen(dst, now)
	}
	slices.SortFunc(dst[start:], func(a, b Open) int { return cmp.Compare(a.ID.Seq, b.ID.Seq) })
	return dst
}

// Stats appends one entry for each scope to dst, ordered by name, and returns it.
func (s *Scopes) Stats(dst []ScopeStats) []ScopeStats {
	start := len(dst)
	for _, sc := range s.all() {
		dst = append(dst, sc.Stats())
	}
	slices.SortFunc(dst[start:], func(a, b ScopeStats) int { return strings.Compare(a.Scope, b.Scope) })
	return dst
}

// all copies the list of scopes.
func (s *Scopes) all() []*Scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	scopes := make([]*Scope, 0, len(s.scopes))
	for _, sc := range s.scopes {
		scopes = append(scopes, sc)
	}
	return scopes
}

// IsOpen reports whether a span of a scope has begun and not ended. With low cardinality it answers for the epoch.
func (s *Scopes) IsOpen(scope string, id SpanID) bool {
	s.mu.Lock()
	sc := s.scopes[scope]
	s.mu.Unlock()
	return sc != nil && sc.isOpen(id.Seq)
}

// isShared reports whether the spans of a scope were begun with [Scope.BeginShared].
func (s *Scopes) isShared(scope string) bool {
	s.mu.Lock()
	sc := s.scopes[scope]
	s.mu.Unlock()
	return sc != nil && sc.shared.Load()
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
	epoch atomic.Pointer[epoch] // takes in new spans; nil without low cardinality
	// shared is set when its spans are begun with BeginShared, which leaves no frame that tells a span's stack.
	shared atomic.Bool

	mu     sync.Mutex
	begun  uint64 // like ended without the spans of epochs
	ended  uint64
	slots  []openSpan
	free   int      // the first free slot; len(slots) for none
	epochs []*epoch // those with open spans at the last rotation, and the one that takes in new ones
}

// openSpan is a slot of the table of open spans, which costs a third of a map.
type openSpan struct {
	id    SpanID // zero for a free slot
	since time.Duration
	outer context.Context //nolint:containedctx // the labels to restore live in it; a span lives for one call
	next  int             // of a free slot, the next one; like Scope.free
}

// Name is the scope's name.
func (sc *Scope) Name() string { return sc.name }

// Object is [Scopes.Object] of the scope's set, for [Scope.Begin]. With low cardinality it is 0, as an epoch has no object.
func (sc *Scope) Object(namespace, name string) Object {
	if sc.set.low.Load() {
		return 0
	}
	return sc.set.Object(namespace, name)
}

// Set is the set the scope belongs to.
func (sc *Scope) Set() *Scopes { return sc.set }

// Stats counts the scope's spans.
func (sc *Scope) Stats() ScopeStats {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	st := ScopeStats{Scope: sc.name, Begun: sc.begun, Ended: sc.ended}
	for _, e := range sc.epochs {
		begun, ended, _ := e.counts()
		st.Begun += begun
		st.Ended += ended
	}
	return st
}

func (sc *Scope) appendOpen(dst []Open, now time.Duration) []Open {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.rotateLocked(now)
	for i := range sc.slots {
		if s := &sc.slots[i]; s.id.Seq != 0 {
			dst = append(dst, Open{Scope: sc.name, ID: s.id, Since: sc.set.start.Add(s.since)})
		}
	}
	for _, e := range sc.epochs {
		if e.inFlight() {
			dst = append(dst, Open{Scope: sc.name, ID: e.id, Since: sc.set.start.Add(e.since)})
		}
	}
	return dst
}

func (sc *Scope) isOpen(seq uint64) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for i := range sc.slots {
		if sc.slots[i].id.Seq == seq {
			return true
		}
	}
	for _, e := range sc.epochs {
		if e.id.Seq == seq {
			return e.inFlight()
		}
	}
	return false
}

// nextID numbers a span. The numbers of a process never repeat.
func (sc *Scope) nextID(object Object) SpanID { return SpanID{Seq: sc.set.seq.Add(1), Object: object} }

// Begin opens a span: it labels the calling goroutine, whose new goroutines inherit the labels, and gives a context that
// carries them. The caller must call [Span.End] once on the same goroutine, by defer, so that a panic ends it too.
func (sc *Scope) Begin(ctx context.Context, object Object) (context.Context, Span) {
	if !sc.set.low.Load() {
		return sc.beginExact(ctx, object)
	}
	e := sc.epoch.Load()
	for e == nil || !e.enter() {
		e = sc.newEpoch(e)
	}
	pprof.SetGoroutineLabels(e.quick)
	shared := &spanContext{ctx, e}
	return shared, Span{shared: shared}
}

// beginExact is Begin with a label of the span's own.
func (sc *Scope) beginExact(ctx context.Context, object Object) (context.Context, Span) {
	id := sc.nextID(object)
	slot := sc.take(openSpan{id: id, since: time.Since(sc.set.start), outer: ctx})
	return sc.label(ctx, id), Span{scope: sc, slot: slot, seq: id.Seq}
}

// Claim says that whatever runs below a function belongs to a scope: a stack that contains "example.com/app.(*Reconciler).Reconcile"
// was made by that controller, although the context it was made with says nothing. A function that two scopes claim is
// nobody's.
func (s *Scopes) Claim(function, scope string) {
	function = unescape(function)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.claims[function], scope) {
		s.claims[function] = append(s.claims[function], scope)
	}
}

// ScopeOf gives the scope that claims the innermost claimed function of a stack, leaf first; ok is false when none does.
func (s *Scopes) ScopeOf(stack []frame.Frame) (scope string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range stack {
		if claims := s.claims[f.Function]; len(claims) == 1 {
			return claims[0], true
		}
	}
	return "", false
}

// ScopeNow is [Scopes.ScopeOf] for the stack of the calling goroutine: of several scopes that claim a function it is the only
// one that has an open span. It is "" when that cannot be told.
func (s *Scopes) ScopeNow(stack []frame.Frame) string {
	if scope, ok := s.ScopeOf(stack); ok {
		return scope
	}
	s.mu.Lock()
	var claims []string
	for _, f := range stack {
		if claims = s.claims[f.Function]; len(claims) > 0 {
			break
		}
	}
	s.mu.Unlock()
	found := ""
	for _, name := range claims {
		if st := s.Scope(name).Stats(); st.Begun == st.Ended {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}

// lastSeq is the number of the span that began last.
func (s *Scopes) lastSeq() uint64 { return s.seq.Load() }
