package probes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// How many overdue entries of one site are leaked by their number alone.
const (
	// overdueAboveLive is the least number when there are more than live objects.
	overdueAboveLive = 3
	// overdueAlone is the least number that may be a leak when it climbs and nothing is known of objects: each may serve one.
	overdueAlone = 10
	// lateLives is how many times the longest life of one that was closed late an overdue entry has lived.
	lateLives = 3
	// overdueGone is how many gone objects prove a leak: one may have been the first to need something that all share.
	overdueGone = 3
	// maxReadings bounds what one Read gives of each sort.
	maxReadings = 64
)

// mainModule is frame.MainModule, under a name that does not clash with fields.
func mainModule() string { return frame.MainModule() }

// entryView is a copy of an entry for one Read.
type entryView struct {
	kind   *Kind
	target string
	site   Site
	scope  string
	id     SpanID
	ended  bool // its span has ended
	age    time.Duration
	ends   time.Duration
	busy   bool // touched since the last Read
	past   pastLives
}

// overdue reports whether an entry is left open; bounded whether it will end by itself in time.
func (l *Ledger) overdue(v *entryView) (overdue, bounded bool) {
	switch {
	case !v.ended || v.busy:
		return false, false
	case v.bounded(l.Options().Grace):
		return false, true
	}
	return v.age >= max(l.Options().Grace, lateLives*v.past.longest), false
}

// bounded reports whether an entry ends by itself and is not late with it.
func (v *entryView) bounded(grace time.Duration) bool {
	return v.ends > 0 && v.age < v.ends+max(grace, 0)
}

// groupKey is what one reading is about.
type groupKey struct {
	place placeKey
	scope string
}

// group is the open entries of one site and scope.
type group struct {
	key     groupKey
	all     int
	overdue []entryView
	bounded []entryView
	claimed bool // there is a reading that says that the overdue ones leak, or may
	sample  entryView
}

// Read implements [Probe]: for each kind how many are open, and for each site with overdue entries how many, leaked or not.
func (l *Ledger) Read(ctx context.Context, dst []Reading) []Reading {
	return l.read(ctx, dst, nil)
}

// read is Read, and shows each entry to also, unless that is nil.
func (l *Ledger) read(_ context.Context, dst []Reading, also func(*entryView)) []Reading {
	spans := l.spans()
	groups, all := map[groupKey]*group{}, map[*Kind][]entryView{}
	for _, v := range l.views(spans) {
		if also != nil {
			also(&v)
		}
		all[v.kind] = append(all[v.kind], v)
		key := groupKey{viewPlace(&v), v.scope}
		g := groups[key]
		if g == nil {
			g = &group{key: key, sample: v}
			groups[key] = g
		}
		g.all++
		switch overdue, bounded := l.overdue(&v); {
		case overdue:
			g.overdue = append(g.overdue, v)
		case bounded:
			g.bounded = append(g.bounded, v)
		}
	}
	for _, kind := range slices.SortedFunc(maps.Keys(all), func(a, b *Kind) int { return cmp.Compare(a.Resource, b.Resource) }) {
		dst = append(dst, Reading{Resource: kind.Resource, Count: float64(len(all[kind])), Covariate: l.live(""), Open: l.oldest(all[kind], maxOpened)})
	}
	dst = l.overdueReadings(dst, groups)
	dst = l.boundedReadings(dst, groups)
	if n := l.dropped.Load(); n > 0 {
		dst = append(dst, Reading{Resource: "entries not tracked", Count: float64(n), Covariate: -1, Total: true})
	}
	return dst
}

// overdueReadings gives the largest groups with overdue entries.
func (l *Ledger) overdueReadings(dst []Reading, groups map[groupKey]*group) []Reading {
	for _, g := range largest(groups, func(g *group) int { return len(g.overdue) }) {
		r := l.reading(g)
		g.claimed = r.Leaked || r.Climbing
		dst = append(dst, r)
	}
	l.climb.EndRound()
	return dst
}

// largest gives the groups of which there is some, at most maxReadings.
func largest(groups map[groupKey]*group, size func(*group) int) []*group {
	var some []*group
	for _, g := range groups {
		if size(g) > 0 {
			some = append(some, g)
		}
	}
	slices.SortFunc(some, func(a, b *group) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a.key.place.site, b.key.place.site), cmp.Compare(a.key.scope, b.key.scope))
	})
	return some[:min(len(some), maxReadings)]
}

func viewPlace(v *entryView) placeKey {
	return (&Entry{kind: v.kind, site: v.site, scope: v.scope, target: v.target}).place()
}

// openSpans is what is in flight at the time of a Read.
type openSpans struct {
	ids    map[uint64]bool
	oldest map[string]uint64 // by scope, the smallest open number
	any    uint64            // the smallest of all that a stack can tell; 0 for none
}

func (l *Ledger) spans() openSpans {
	s := openSpans{ids: map[uint64]bool{}, oldest: map[string]uint64{}}
	if l.Options().Scopes == nil {
		return s
	}
	for _, o := range l.Options().Scopes.open(nil, 0) { // ordered by number
		s.ids[o.ID.Seq] = true
		if s.any == 0 && !l.Options().Scopes.isShared(o.Scope) { // a handler that blocks holds its span open for ever
			s.any = o.ID.Seq
		}
		if _, have := s.oldest[o.Scope]; !have {
			s.oldest[o.Scope] = o.ID.Seq
		}
	}
	return s
}

// views copies the open entries and notes on them whether their spans have ended.
func (l *Ledger) views(spans openSpans) []entryView {
	l.mu.Lock()
	entries := make([]*Entry, 0, l.open)
	lives := make([]pastLives, 0, l.open)
	for e := l.head; e != nil; e = e.next {
		entries = append(entries, e)
		lives = append(lives, l.life[e.place()])
	}
	l.mu.Unlock()
	now, resolved := time.Since(l.start), map[uint64]inSpan{} // by site: resolving a stack is slow
	out := make([]entryView, 0, len(entries))
	for i, e := range entries {
		v := entryView{kind: e.kind, target: e.target, site: e.site, age: now - e.born, ends: e.ends, past: lives[i]}
		touched := e.touched.Load()
		v.busy = e.kind.Works && e.seen.Swap(touched) != touched
		l.placeInSpan(&v, e, spans, resolved)
		if v.ended {
			e.late.Store(true)
		}
		out = append(out, v)
	}
	return out
}

// placeInSpan tells which scope's span an entry belongs to and whether that has ended: by the labels of the context it
// was opened with; else by the functions on its stack, when all spans that may be the one are younger than it.
func (l *Ledger) placeInSpan(v *entryView, e *Entry, spans openSpans, resolved map[uint64]inSpan) {
	if id, ok := ParseSpanID(e.id); ok {
		v.scope, v.id = e.scope, id
		v.ended = l.Options().Scopes != nil && !spans.ids[id.Seq]
		return
	}
	if l.Options().Scopes == nil || e.site.IsZero() {
		return
	}
	in, known := resolved[e.site.ID()]
	if !known {
		frames := e.site.Frames()
		in.scope, _ = l.Options().Scopes.ScopeOf(frames)
		in.some = in.scope != "" || belowSpan(frames)
		resolved[e.site.ID()] = in
	}
	oldest := spans.any
	if in.scope != "" {
		v.scope, oldest = in.scope, spans.oldest[in.scope]
	}
	v.ended = in.some && (oldest == 0 || oldest > e.lastSeq)
}

// inSpan says whether a stack is of a span, and of which scope's if that is known.
type inSpan struct {
	scope string
	some  bool
}

// belowSpan reports whether a stack is that of a span's own goroutine: one of the functions that run user's code as spans
// is on it.
func belowSpan(stack []frame.Frame) bool {
	for i := range stack {
		name, own := strings.CutPrefix(stack[i].Function, "github.com/leakguard/leakguard/")
		if own && (strings.HasPrefix(name, "leakguard.(*scoped[") || strings.HasPrefix(name, "probes.(*Scope).Do") || strings.HasPrefix(name, "probes.(*handler).ServeHTTP")) {
			return true
		}
	}
	return false
}

// live is the number of live objects of a scope, of all for ""; -1 when unknown.
func (l *Ledger) live(scope string) float64 {
	switch {
	case l.Options().Objects == nil:
		return -1
	case scope == "" && l.Options().Objects.Total() > 0:
		return float64(l.Options().Objects.Total())
	}
	if n, ok := l.Options().Objects.Live(scope); ok {
		return float64(n)
	}
	return -1
}

// reading judges the overdue entries of a group.
func (l *Ledger) reading(g *group) Reading {
	kind := g.sample.kind
	r := Reading{
		Resource: kind.Resource + " left open", Scope: g.key.scope, Count: float64(len(g.overdue)), InAll: float64(g.all - len(g.bounded)),
		Covariate: l.live(g.key.scope), Trap: kind.Trap, Advice: kind.Advice,
		Stack: g.sample.site.Frames(), Culprit: g.sample.site.Culprit(l.Options().MainModule),
	}
	what := kind.Resource
	if l.describe != nil {
		what += " (" + l.describe(g.sample.target) + ")"
	}
	climbs := l.climb.Observe(fmt.Sprint(g.key.scope, " ", kind.Resource, " ", g.key.place.site, g.key.place.other), len(g.overdue)) >= Climbing
	n, why := l.leaked(g, r.Covariate)
	if n == 0 {
		r.Climbing = climbs && r.Covariate < 0 && len(g.overdue) >= overdueAlone
		r.Reason = fmt.Sprintf("%d %s are open after the work that opened them has ended, none of them twice", len(g.overdue), what)
		return r
	}
	r.Leaked, r.Count = true, float64(n)
	r.Reason = fmt.Sprintf("%d %s were not %s by the work that opened them, which has ended: %s", n, what, kind.Closed, why)
	return r
}

// leaked counts the overdue entries that are proven to be leaked, and says by what.
func (l *Ledger) leaked(g *group, live float64) (n int, why string) {
	c := l.count(g)
	switch total := len(g.overdue); {
	case c.twice > 0:
		return c.twice + c.again + c.proven(), "several are for the same thing"
	case c.again > 0:
		return c.again + c.proven(), "one object has several"
	case c.proven() > 0:
		return c.gone, "their objects are gone"
	case live >= 0 && float64(total-c.going) > live && total >= overdueAboveLive:
		return total, fmt.Sprintf("there are only %.0f objects", live)
	}
	return 0, ""
}

// targetOf is what an entry is for, on behalf of an object: several objects may each want one for the same thing. The object is
// 0 where it is unknown.
type targetOf struct {
	target string
	object Object
}

// census sorts the overdue entries of a group; each is counted once, but for going.
type census struct {
	twice int // for a target that has others, of the same object
	again int // of an object that has others, of other spans
	gone  int // of an object that went at least the grace ago
	going int // of an object that is gone
}

// proven is how many entries of gone objects are leaked.
func (c *census) proven() int {
	if c.gone < overdueGone {
		return 0
	}
	return c.gone
}

func (l *Ledger) count(g *group) (c census) {
	targets, spans := map[targetOf]int{}, map[Object]map[uint64]bool{}
	for i := range g.overdue {
		v := &g.overdue[i]
		if v.target != "" {
			targets[targetOf{v.target, v.id.Object}]++
		}
		if v.id.Object != 0 {
			if spans[v.id.Object] == nil {
				spans[v.id.Object] = map[uint64]bool{}
			}
			spans[v.id.Object][v.id.Seq] = true
		}
	}
	for i := range g.overdue {
		v := &g.overdue[i]
		gone, age := l.gone(v)
		if gone {
			c.going++
		}
		switch {
		case targets[targetOf{v.target, v.id.Object}] > 1:
			c.twice++
		case len(spans[v.id.Object]) > 1:
			c.again++
		case gone && age >= l.Options().Grace:
			c.gone++
		}
	}
	return c
}

// gone reports whether an entry's object is gone, and for how long.
func (l *Ledger) gone(v *entryView) (gone bool, age time.Duration) {
	if l.Options().Objects == nil || v.id.Object == 0 {
		return false, 0
	}
	state, since := l.Options().Objects.State(v.scope, v.id.Object)
	if state != ObjectGone {
		return false, 0
	}
	return true, time.Since(since)
}
