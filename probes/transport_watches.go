package probes

import (
	"cmp"
	"fmt"
	"slices"
)

// watchesLeaked is the least number of watches of one selection that is a leak when it climbs. Two or three may be the
// caches of as many managers.
const watchesLeaked = 4

// openWatches is the open watches of one selection.
type openWatches struct {
	target string
	n      int
	sample entryView
}

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
		climbs := t.watches.Observe(o.target, o.n) >= Climbing
		if i < maxReadings {
			dst = append(dst, t.severalReading(o, climbs && o.n >= watchesLeaked))
		}
	}
	t.watches.EndRound()
	return dst
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
