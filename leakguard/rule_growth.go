package leakguard

import (
	"fmt"
	"time"
)

// ruleGrowth is rules G and T: the number of goroutines of one place rises, few of its survivors ever ended, and the
// number of live objects does not explain it.
const ruleGrowth = "growth"

// level judges the place without a dump; 0 is nothing to say. levelFiring means that a dump may decide.
func (p *growthPlace) level(c *growthCensus, now time.Time, t timing) level {
	if c.explained() || !c.growing(now, len(p.layers), t) || float64(c.agedEnded) > maxEnded*float64(c.aged+c.agedEnded) {
		return 0
	}
	switch {
	case c.aged >= enough && c.cohorts >= enough:
		return levelFiring
	case c.aged >= enough/2 && c.cohorts >= enough/2:
		return levelPending
	}
	return 0
}

// judgeGrowth gives the growth rule's signals and reports whether a dump is wanted to decide one.
func judgeGrowth(table *growthTable, ev *Evidence, emit func(signal)) (wantDump bool) {
	var index *dumpIndex
	objects := ev.explaining()
	for _, p := range table.places {
		if p.sample == nil || len(p.layers) == 0 {
			continue
		}
		c := p.census(ev.At, objects, table.timing)
		l := p.level(&c, ev.At, table.timing)
		if l == 0 {
			p.keepAlive(table, &c, ev.At, emit)
			continue
		}
		if l == levelFiring {
			if ev.Dump != nil {
				if index == nil {
					index = indexDump(ev.Dump)
				}
				p.decision = index.decide(p.root, ev.At.Sub(c.oldest))
				p.decision.at = ev.At
			}
			p.decision.refused = ev.DumpRefused
			wantDump = wantDump || !p.decision.fresh(ev.At, table.timing)
			l = p.decided(&c, ev.At, table.timing)
		}
		s := p.signal(table.main, &c, l, ev.At)
		emit(s)
	}
	return wantDump
}

// decided is the level of a place that has all that a leak has in the cheap profile.
func (p *growthPlace) decided(c *growthCensus, now time.Time, t timing) level {
	d := &p.decision
	switch {
	case c.aged >= pile && c.cohorts >= enough:
		return levelFiring // so many need no dump
	case d.fresh(now, t) && !d.leak:
		return levelListed
	case d.fresh(now, t) && d.running && c.aged < enoughRunning:
		return levelPending
	case d.fresh(now, t):
		return levelFiring
	case d.refused:
		return levelListed
	}
	return levelPending
}

// keepAlive says that a place whose growth has been reported still holds at least half of it. Without a finding it has
// no effect: a listed growth is not worth a line.
func (p *growthPlace) keepAlive(table *growthTable, c *growthCensus, now time.Time, emit func(signal)) {
	if !p.decision.leak || c.aged < enough/2 {
		p.decision = decision{}
		return
	}
	emit(p.signal(table.main, c, levelListed, now))
}

func (p *growthPlace) signal(main string, c *growthCensus, l level, now time.Time) signal {
	culprit, pattern := blame(p.sample.Stack, p.decision.creator, main)
	s := signal{
		rule: ruleGrowth, category: "goroutine-growth", root: p.root, settled: c.aged, tier: TierLikely, level: l, controller: p.controller,
		culprit: culprit, pattern: pattern, count: int64(c.born), perHour: perHour(c.born, c.oldest, now),
		waitReason: p.sample.WaitReason, since: c.oldest, stack: p.sample.Stack, sample: p.sample,
		advice: "end the goroutine with the work that needs it: give it a context or a stop channel, and wait for it",
	}
	if l == levelListed {
		s.tier = TierListed
	}
	s.reason = fmt.Sprintf("%d goroutines → %d in %s, born in %d separate spans of time; %d of the survivors ended",
		p.baseline, p.count, now.Sub(c.oldest).Round(time.Second), c.cohorts, c.agedEnded)
	switch d := &p.decision; {
	case d.refused && l == levelListed:
		s.reason += "; not decided: dump over budget"
	case d.reason != "":
		s.reason += "; " + d.reason
	}
	return s
}
