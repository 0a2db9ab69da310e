package leakguard

import (
	"fmt"
	"time"

	"github.com/leakguard/leakguard/probes"
)

// ruleGone is rule K: the object of a goroutine's reconcile was deleted and the goroutine lives on.
const ruleGone = "object-gone"

// goneCensus is what a place has of goroutines whose object is gone.
type goneCensus struct {
	objects map[probes.Object]bool // whose survivors are old enough to be called late
	proven  map[probes.Object]bool // whose survivors are old enough to be proof
	count   int
	oldest  time.Time
}

// goneObjects counts survivors of gone objects. A goroutine that ended after a long time, such as a job that cleans up
// behind a deletion, raises the age that is asked of the others.
func (p *orphanPlace) goneObjects(objects Objects, now time.Time, t timing) goneCensus {
	c := goneCensus{objects: map[probes.Object]bool{}, proven: map[probes.Object]bool{}}
	proof := max(t.goneProven, outlives*p.endings.longest)
	late := proof * 3 / 5
	for _, l := range p.lives {
		age := now.Sub(l.first)
		if age < late {
			continue
		}
		state, since := objects.State(p.controller, l.object)
		if state != probes.ObjectGone || now.Sub(since) < t.gone {
			continue
		}
		c.count += l.count
		c.objects[l.object] = true
		if age >= proof {
			c.proven[l.object] = true
		}
		if c.oldest.IsZero() || l.first.Before(c.oldest) {
			c.oldest = l.first
		}
	}
	return c
}

// judgeGone gives rule K's signals.
func judgeGone(table *orphanTable, objects Objects, now time.Time, emit func(signal)) {
	if objects == nil {
		return
	}
	for _, p := range table.places {
		if p.sample == nil || p.unknown {
			continue
		}
		c := p.goneObjects(objects, now, table.timing)
		if len(c.objects) == 0 {
			continue
		}
		s := p.signal(table.main, &orphanCensus{oldest: c.oldest}, now)
		s.rule, s.level, s.tier, s.count, s.young = ruleGone, levelListed, TierListed, int64(c.count), 0
		switch {
		case len(c.proven) >= provenGone:
			s.level, s.tier = levelFiring, TierProven
		case len(c.objects) >= provenGone:
			s.level, s.tier = levelPending, TierLikely
		}
		s.reason = fmt.Sprintf("%d goroutines belong to %d deleted objects, the oldest has lived for %s; the longest that ended by itself lived %s",
			c.count, len(c.objects), now.Sub(c.oldest).Round(time.Second), p.endings.longest.Round(time.Second))
		s.advice = "stop the object's worker when the object is deleted: keep its cancel function by object and call it when Get says NotFound"
		emit(s)
	}
}
