package leakguard

import (
	"strings"
	"time"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Bounds of the table of orphans.
const (
	maxLives        = 4096 // survivors in all
	maxPlaceLives   = 512  // of one place
	maxCohortLives  = 8    // of one place and cohort, once the place has manyLives
	manyLives       = 128
	maxOrphanPlaces = 1024
)

// orphanTable follows the goroutines that carry the label of an ended reconcile, by the place they were started for.
type orphanTable struct {
	timing  timing
	main    string
	places  map[placeKey]*orphanPlace
	lives   int
	dropped uint64 // goroutines that found no room
	total   int    // orphans of the last tick
}

// placeKey is a controller and the function that its goroutines were started for.
type placeKey struct{ controller, root string }

// orphanPlace is all orphans of one place. Those of spans without an object are judged by their growth, since nobody can tell
// one worker for each object from a leak; here they are only followed to see whether they end. What stands under "this tick"
// is made anew at each tick.
type orphanPlace struct {
	placeKey
	lives    map[uint64]*life // by the span's sequence number
	endings  endings
	skipped  bool   // some lives found no room: from then on only spans above highest are taken in
	highest  uint64 // the highest span seen
	before   uint64 // the same, as of the tick before
	cohortAt int64  // the cohort that cohortN counts
	cohortN  int
	seen     time.Time // when it last had an orphan: short work comes and goes between two looks
	since    time.Time // when it had the first one
	unknown  bool      // what its spans work on is not known

	// this tick
	goroutines int
	settled    int // of them past the grace; an estimate once some found no room
	spans      map[uint64]bool
	objects    map[probes.Object]int // spans of each object
	sample     *stackmatch.Group     // the largest group
}

// life is one ended reconcile that has left goroutines behind.
type life struct {
	object      probes.Object
	first, last time.Time
	count       int
	stack       uint64
	moved       bool // its stack was not the same at all scans: it runs
}

func newOrphanTable(t timing, main string) *orphanTable {
	return &orphanTable{timing: t, main: main, places: map[placeKey]*orphanPlace{}}
}

// observe takes in one tick's groups.
func (t *orphanTable) observe(ev *Evidence) {
	t.total = 0
	for _, p := range t.places {
		p.goroutines, p.settled, p.sample, p.before = 0, 0, nil, p.highest
		clear(p.spans)
		clear(p.objects)
	}
	for i := range ev.Groups {
		t.take(&ev.Groups[i], ev)
	}
	for key, p := range t.places {
		t.bury(p, ev.At)
		if len(p.lives) == 0 && p.endings.empty(ev.At, t.timing.memory) && ev.At.Sub(p.seen) > t.timing.fresh {
			delete(t.places, key)
		}
	}
}

// take counts a group if it is what an ended reconcile left behind.
func (t *orphanTable) take(g *stackmatch.Group, ev *Evidence) {
	id, ok := endedSpan(g, ev)
	if !ok {
		return
	}
	root := frame.Root(g.Stack).Function
	if root == "" || isShared(root) {
		return
	}
	if id.Object != 0 {
		t.total += g.Count
	}
	controller, _ := g.Label(probes.LabelController)
	p := t.place(placeKey{controller, root})
	if p == nil {
		t.dropped += uint64(g.Count)
		return
	}
	p.goroutines += g.Count
	p.seen, p.unknown = ev.At, id.Object == 0
	if p.since.IsZero() {
		p.since = ev.At
	}
	if p.sample == nil || g.Count > p.sample.Count {
		p.sample = g
	}
	if !p.spans[id.Seq] {
		p.spans[id.Seq] = true
		p.objects[id.Object]++
	}
	t.live(p, id, g, ev.At)
	p.highest = max(p.highest, id.Seq)
}

// endedSpan gives the span that has left a group behind; ok is false when there is none.
func endedSpan(g *stackmatch.Group, ev *Evidence) (id probes.SpanID, ok bool) {
	value, ok := g.Label(probes.LabelReconcile)
	if !ok {
		return id, false
	}
	id, ok = probes.ParseSpanID(value)
	return id, ok && !ev.inFlight(id.Seq) && (id.Object != 0 || !isSpanItself(g.Stack))
}

// isSpanItself reports whether a goroutine runs a span that shares its label with others, of which this one may have ended
// since the profile was taken.
func isSpanItself(stack []frame.Frame) bool {
	for _, f := range stack {
		if strings.HasPrefix(f.Function, "github.com/leakguard/leakguard/probes") || strings.HasPrefix(f.Function, wrapper) {
			return true
		}
	}
	return false
}

func (t *orphanTable) place(key placeKey) *orphanPlace {
	p := t.places[key]
	if p == nil && len(t.places) < maxOrphanPlaces {
		p = &orphanPlace{placeKey: key, lives: map[uint64]*life{}, spans: map[uint64]bool{}, objects: map[probes.Object]int{}}
		t.places[key] = p
	}
	return p
}

// live notes that a span's goroutines are alive.
func (t *orphanTable) live(p *orphanPlace, id probes.SpanID, g *stackmatch.Group, now time.Time) {
	l := p.lives[id.Seq]
	switch {
	case l == nil:
		if !t.room(p, id, now) {
			p.skipped = true
			t.dropped += uint64(g.Count)
			return
		}
		l = &life{object: id.Object, first: now, stack: g.ID}
		p.lives[id.Seq] = l
		t.lives++
	case l.last.Equal(now): // another group of the same span
		l.count += g.Count
		return
	case l.stack != g.ID:
		l.moved, l.stack = true, g.ID
	}
	l.last, l.count = now, g.Count
}

// room reports whether a new life may be followed. When they come faster than the table can hold, a few of each cohort
// are enough to judge the place. After one was passed over, only spans newer than those of earlier
// ticks are taken in, for else an old one would look like a new birth.
func (t *orphanTable) room(p *orphanPlace, id probes.SpanID, now time.Time) bool {
	if t.lives >= maxLives || len(p.lives) >= maxPlaceLives || (p.skipped && id.Seq <= p.before) {
		return false
	}
	if cohort := cohortOf(now, t.timing.pendingCohort); cohort != p.cohortAt {
		p.cohortAt, p.cohortN = cohort, 0
	}
	if len(p.lives) >= manyLives && p.cohortN >= maxCohortLives {
		return false
	}
	p.cohortN++
	return true
}

// bury takes out the lives that were not seen this tick.
func (t *orphanTable) bury(p *orphanPlace, now time.Time) {
	followed := 0
	for seq, l := range p.lives {
		if l.last.Equal(now) {
			followed += l.count
			if now.Sub(l.first) >= t.timing.grace {
				p.settled += l.count
			}
			continue
		}
		delete(p.lives, seq)
		t.lives--
		ended := 1
		if p.unknown { // many spans are one there
			ended = l.count
		}
		p.endings.addCount(now, l.last.Sub(l.first), ended, t.timing)
	}
	if followed > 0 {
		p.settled = int(int64(p.settled) * int64(p.goroutines) / int64(followed))
	}
}

// cohortOf numbers the cohort that a moment falls into.
func cohortOf(at time.Time, cohort time.Duration) int64 { return at.UnixNano() / int64(max(cohort, 1)) }
