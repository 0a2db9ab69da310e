package leakguard

import (
	"slices"
	"time"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Bounds of the table of growing places.
const (
	maxGrowthPlaces = 4096
	maxLayers       = 64 // of 16 bytes: 1 KiB for a place, 4 MiB in all
)

// growthTable follows the number of goroutines of each place that is not judged as orphans: goroutines without the
// label of a reconcile, and pooled connections, whose label says no more than who opened them.
// The cheap profile has no goroutine ids, so a goroutine is counted as an ordinal of its place, alive while the count stays
// above it.
type growthTable struct {
	timing  timing
	main    string
	places  map[placeKey]*growthPlace
	dropped uint64
	started bool // the first tick is the baseline
}

// growthPlace is the goroutines of one place, as layers of births: the last one in is the first one taken to have ended.
type growthPlace struct {
	placeKey
	baseline int // of the first tick; for a place that appeared later 0
	layers   []layer
	endings  endings
	roster   roster
	decision decision
	harmless bool // by the last dump that was asked what they are

	// this tick
	count  int
	sample *stackmatch.Group
}

// layer is the births of one cohort.
type layer struct {
	at             int64 // in nanoseconds since 1970
	count, objects int32 // how many were born, and how many objects lived and requests waited then
}

func (l *layer) born() time.Time { return time.Unix(0, l.at) }

func newGrowthTable(t timing, main string) *growthTable {
	return &growthTable{timing: t, main: main, places: map[placeKey]*growthPlace{}}
}

// observe takes in one tick's groups.
func (t *growthTable) observe(ev *Evidence) {
	for _, p := range t.places {
		p.count, p.sample = 0, nil
	}
	for i := range ev.Groups {
		t.take(&ev.Groups[i])
	}
	objects := ev.explaining()
	for key, p := range t.places {
		p.settle(ev.At, objects, t)
		if p.count == 0 && p.endings.empty(ev.At, t.timing.memory) && p.roster.ended.empty(ev.At, t.timing.memory) {
			delete(t.places, key)
		}
	}
	t.started = true
}

// take counts a group that has no label of a span, or one of a span that works on no object, as in low-cardinality mode;
// and those of a span that do not belong to it.
func (t *growthTable) take(g *stackmatch.Group) {
	root := frame.Root(g.Stack).Function
	if value, labelled := g.Label(probes.LabelReconcile); labelled && !mustNotGrow(root) {
		if id, ok := probes.ParseSpanID(value); ok && id.Object != 0 {
			return
		}
	}
	if root == "" || isServing(root) {
		return
	}
	controller, _ := g.Label(probes.LabelController)
	key := placeKey{controller, root}
	p := t.places[key]
	if p == nil {
		if len(t.places) >= maxGrowthPlaces {
			t.dropped += uint64(g.Count)
			return
		}
		p = &growthPlace{placeKey: key}
		t.places[key] = p
	}
	p.count += g.Count
	if p.sample == nil || g.Count > p.sample.Count {
		p.sample = g
	}
}

// settle turns the tick's count into births and endings.
func (p *growthPlace) settle(now time.Time, objects int, t *growthTable) {
	if !t.started {
		p.baseline = p.count
		return
	}
	have := p.baseline
	for _, l := range p.layers {
		have += int(l.count)
	}
	switch {
	case p.count > have:
		p.grow(now, p.count-have, objects, t.timing.cohort)
	case p.count < have:
		p.shrink(now, have-p.count, t.timing)
	}
}

func (p *growthPlace) grow(now time.Time, n, objects int, cohort time.Duration) {
	if last := len(p.layers) - 1; last >= 0 && cohortOf(p.layers[last].born(), cohort) == cohortOf(now, cohort) {
		p.layers[last].count += int32(n) //nolint:gosec // a process has fewer goroutines than that
		return
	}
	if len(p.layers) == maxLayers { // the two oldest become one, as old as the younger of them
		p.layers[1].count += p.layers[0].count
		p.layers = slices.Delete(p.layers, 0, 1)
	}
	p.layers = append(p.layers, layer{at: now.UnixNano(), count: int32(n), objects: int32(objects)}) //nolint:gosec // as above
}

func (p *growthPlace) shrink(now time.Time, n int, t timing) {
	for n > 0 && len(p.layers) > 0 {
		last := &p.layers[len(p.layers)-1]
		ended := min(n, int(last.count))
		last.count -= int32(ended) //nolint:gosec // as above
		n -= ended
		p.endings.addCount(now, now.Sub(last.born()), ended, t)
		if last.count == 0 {
			p.layers = p.layers[:len(p.layers)-1]
		}
	}
	p.baseline -= n
}

// growthCensus is what one place looks like at one tick.
type growthCensus struct {
	born, aged, cohorts int // goroutines since the baseline; the survivors of them, and in how many cohorts they came
	oldest, newest      time.Time
	followed            int // of the born, those since dumps follow the place
	agedEnded           int
	objectsGrown        int // how many more objects live and requests wait than when the oldest was born
}

func (p *growthPlace) census(now time.Time, objects int, t timing) growthCensus {
	var c growthCensus
	p.endings.forget(now, t.memory)
	p.roster.ended.forget(now, t.memory)
	_, counted := p.endings.counts()
	_, known := p.roster.ended.counts()
	c.agedEnded = max(counted, known)
	for _, l := range p.layers {
		c.born += int(l.count)
		if !p.roster.since.IsZero() && l.born().After(p.roster.since) {
			c.followed += int(l.count)
		}
		if now.Sub(l.born()) >= t.aged {
			c.aged += int(l.count)
			c.cohorts++
		}
	}
	if len(p.layers) > 0 {
		c.oldest, c.newest = p.layers[0].born(), p.layers[len(p.layers)-1].born()
		c.objectsGrown = objects - int(p.layers[0].objects)
	}
	return c
}

// identify lets a full dump say which goroutines were there at the dump before. When those that should have been were not, all are
// taken for born now.
func (p *growthPlace) identify(x *dumpIndex, now time.Time, t timing) {
	stayed, before := p.roster.see(x, p, now, t)
	if before.IsZero() {
		return
	}
	born, claimed := 0, 0
	for _, l := range p.layers {
		born += int(l.count)
		if cohortOf(l.born(), t.cohort) < cohortOf(before, t.cohort) { // a layer takes in more until its cohort is over
			claimed += int(l.count)
		}
	}
	if float64(claimed-stayed) <= maxEnded*float64(claimed) {
		return
	}
	p.roster.refute(now, t)
	all := p.layers[len(p.layers)-1]
	all.at, all.count = now.UnixNano(), int32(born) //nolint:gosec // a process has fewer goroutines than that
	p.layers = append(p.layers[:0], all)
}

// growing reports whether the place still bears goroutines: lately, or no longer ago than three times its usual gap.
func (c *growthCensus) growing(now time.Time, layers int, t timing) bool {
	if layers < 2 {
		return false
	}
	gap := c.newest.Sub(c.oldest) / time.Duration(layers-1)
	return now.Sub(c.newest) <= max(t.fresh, 3*gap)
}

// explained reports whether the number of live objects and of waiting requests has grown as much: one worker for each
// object is no leak, and a backlog is none.
func (c *growthCensus) explained() bool { return c.objectsGrown > 0 && 5*c.objectsGrown >= 4*c.born }
