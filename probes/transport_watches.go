package probes

import (
	"cmp"
	"fmt"
	"slices"
)

// How the number of watches of one selection must have grown to be a leak that no span explains.
const (
	// watchesLeaked is the least number. Two or three may be the caches of as many managers.
	watchesLeaked = 4
	// watchesRises is in how many reads the number must have risen, with no fall between.
	watchesRises = 3
	// maxTargets bounds the selections that are followed.
	maxTargets = 1024
)

// openWatches is the open watches of one selection.
type openWatches struct {
	target string
	n      int
	sample entryView
}

// watchTarget remembers the number of watches of one selection from one Read to the next.
type watchTarget struct{ last, rises int }

func noteWatch(open map[string]*openWatches, v *entryView) {
	o := open[v.target]
	if o == nil {
		o = &openWatches{target: v.target, sample: *v}
		open[v.target] = o
	}
	o.n++
	if o.sample.scope == "" && v.scope != "" {
		o.sample = *v
	}
}

// watchReadings gives the selections that are watched more than once.
func (t *Transport) watchReadings(dst []Reading, open map[string]*openWatches) []Reading {
	t.mu.Lock()
	defer t.mu.Unlock()
	for target := range t.targets {
		if o := open[target]; o == nil || o.n < 2 {
			delete(t.targets, target)
		}
	}
	var several []*openWatches
	for _, o := range open {
		if o.n > 1 {
			several = append(several, o)
		}
	}
	slices.SortFunc(several, func(a, b *openWatches) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.target, b.target))
	})
	for i, o := range several {
		leaked := t.risesLocked(o)
		if i < maxReadings {
			dst = append(dst, t.severalReading(o, leaked))
		}
	}
	return dst
}

// risesLocked follows the number of watches of a selection and reports whether it only ever grows.
func (t *Transport) risesLocked(o *openWatches) bool {
	w := t.targets[o.target]
	if w == nil {
		if len(t.targets) >= maxTargets {
			return false
		}
		w = &watchTarget{}
		t.targets[o.target] = w
	}
	switch {
	case o.n > w.last:
		w.rises++
	case o.n < w.last:
		w.rises = 1
	}
	w.last = o.n
	return o.n >= watchesLeaked && w.rises >= watchesRises
}

func (t *Transport) severalReading(o *openWatches, leaked bool) Reading {
	what := describe(o.target)
	return Reading{
		Resource: "several: " + what, Scope: o.sample.scope, Count: float64(o.n), Covariate: 1, Leaked: leaked,
		Culprit: o.sample.site.Culprit(t.ledger.options.MainModule), Stack: o.sample.site.Frames(), Trap: "S1-04",
		Reason: fmt.Sprintf("%d watches of one resource and selector are open at once (%s); one would do", o.n, what),
		Advice: "share one informer: use the manager's cache, or stop each informer factory and cache with the work that started it",
	}
}
