package leakguard

import (
	"fmt"
	"time"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// ruleOrphan is rule O: goroutines of several ended reconciles of one object hold the same stack. One worker for each
// object is normal, two for one object is not.
const ruleOrphan = "orphaned"

// orphanCensus is what one place looks like at one tick.
type orphanCensus struct {
	confirmed, aged               int // spans with goroutines past the grace, and past the age of a survivor
	pendingCohorts, cohorts       int // of the confirmed, and of the aged
	confirmedSurplus, agedSurplus int // spans beyond one for each object
	oldest, newest                time.Time
	moved                         int // spans whose goroutines run
	lateEnded, agedEnded          int
}

func (p *orphanPlace) census(now time.Time, t timing) orphanCensus {
	var c orphanCensus
	c.lateEnded, c.agedEnded = p.endings.counts()
	pending, cohorts := map[int64]bool{}, map[int64]bool{}
	confirmed, aged := map[probes.Object]bool{}, map[probes.Object]bool{}
	for _, l := range p.lives {
		age := now.Sub(l.first)
		if age < t.grace || age == 0 {
			continue
		}
		c.confirmed++
		pending[cohortOf(l.first, t.pendingCohort)] = true
		confirmed[l.object] = true
		if l.moved {
			c.moved++
		}
		if c.oldest.IsZero() || l.first.Before(c.oldest) {
			c.oldest = l.first
		}
		if l.first.After(c.newest) {
			c.newest = l.first
		}
		if age >= t.aged {
			c.aged++
			cohorts[cohortOf(l.first, t.cohort)] = true
			aged[l.object] = true
		}
	}
	c.pendingCohorts, c.cohorts = len(pending), len(cohorts)
	c.confirmedSurplus, c.agedSurplus = c.confirmed-len(confirmed), c.aged-len(aged)
	return c
}

// growing reports whether the place still bears orphans: lately, or no longer ago than three times its usual gap.
func (c *orphanCensus) growing(now time.Time, t timing) bool {
	if c.confirmed < 2 {
		return false
	}
	gap := c.newest.Sub(c.oldest) / time.Duration(c.confirmed-1)
	return now.Sub(c.newest) <= max(t.fresh, 3*gap)
}

// need is how many survivors in as many cohorts make an alarm.
func (c *orphanCensus) need() int {
	if 5*c.moved > c.confirmed {
		return enoughRunning
	}
	return enough
}

// level judges the place by rule O; 0 is nothing to say.
func (c *orphanCensus) level(now time.Time, t timing) level {
	growing := c.growing(now, t)
	switch {
	case growing && c.fires():
		return levelFiring
	case growing && c.isPending():
		return levelPending
	case c.aged >= 2 || (c.aged == 1 && now.Sub(c.oldest) >= t.resolve):
		return levelListed
	}
	return 0
}

// fires reports whether a place that grows has enough survivors, several of them on one object, of which few ever ended.
func (c *orphanCensus) fires() bool {
	need := c.need()
	return c.aged >= need && c.cohorts >= need && c.agedSurplus >= pendingSpans &&
		float64(c.agedEnded) <= maxEnded*float64(c.aged+c.agedEnded)
}

// isPending reports whether a place that grows may be one that fires later. One of which a quarter has ended is not.
func (c *orphanCensus) isPending() bool {
	return c.confirmed >= pendingSpans && c.pendingCohorts >= pendingSpans && c.confirmedSurplus >= 1 && 4*c.lateEnded <= c.confirmed
}

// judgeOrphans gives rule O's signals.
func judgeOrphans(table *orphanTable, now time.Time, emit func(signal)) {
	for _, p := range table.places {
		if p.sample == nil {
			continue
		}
		c := p.census(now, table.timing)
		l := c.level(now, table.timing)
		if l == 0 || p.unknown {
			p.notice(table.main, &c, now, emit)
			continue
		}
		s := p.signal(table.main, &c, now)
		s.rule, s.level, s.tier = ruleOrphan, l, TierLikely
		if l == levelListed {
			s.tier = TierListed
		}
		s.reason = fmt.Sprintf("%d goroutines of %d ended reconciles of %d objects are alive, the oldest for %s; %d more ended late",
			p.goroutines, len(p.spans), len(p.objects), now.Sub(c.oldest).Round(time.Second), c.lateEnded)
		s.advice = "stop the goroutine when its reconcile ends or when its object goes: pass it a context that is cancelled then, and select on it"
		emit(s)
	}
}

// boundedWork is how many goroutines must have outlived their reconciles and ended to be worth a notice.
const boundedWork = 2 * enough

// notice says once that reconciles start work that outlives them, when it has always ended so far: it is no leak, but piles
// up with the rate of reconciles.
func (p *orphanPlace) notice(main string, c *orphanCensus, now time.Time, emit func(signal)) {
	late, aged := p.endings.counts()
	if p.endings.short+late < boundedWork || aged > 0 {
		return
	}
	s := p.signal(main, &orphanCensus{oldest: now}, now)
	s.rule, s.level, s.tier, s.category = ruleOrphan, levelListed, TierNotice, "goroutine-outlives"
	ended, work := p.endings.short+late, "reconciles"
	if p.unknown {
		work = "calls"
	}
	s.reason = fmt.Sprintf("%d goroutines that outlived the %s that started them were seen and have ended, %.0f an hour, the longest after %s; %d are alive now, %d past the grace: "+
		"their number is the rate of the %s times how long each goroutine takes",
		ended, work, perHour(ended, p.since, now), p.endings.longest.Round(time.Millisecond), p.goroutines, c.confirmed, work)
	s.advice = "wait for the work where it is started, or give it to a workqueue or a pool of workers with a bound"
	emit(s)
}

// signal gives what all rules about orphans say of a place.
func (p *orphanPlace) signal(main string, c *orphanCensus, now time.Time) signal {
	culprit, pattern := blame(p.sample.Stack, frame.Frame{}, main)
	return signal{
		category: orphanCategory, root: p.root, settled: p.settled, controller: p.controller, culprit: culprit, pattern: pattern,
		count: int64(p.goroutines), young: int64(p.goroutines - p.settled), perHour: perHour(len(p.spans), c.oldest, now), waitReason: p.sample.WaitReason,
		since: c.oldest, stack: p.sample.Stack, sample: p.sample,
	}
}

// blame gives the culprit of a stack, or the function that it was started for when the code to fix is in no frame.
func blame(stack []frame.Frame, creator frame.Frame, main string) (culprit frame.Frame, pattern bool) {
	if f, _, ok := frame.Culprit(stack, creator, main); ok {
		return f, false
	}
	return frame.Root(stack), true
}
