package leakguard

import (
	"fmt"
	"sync"
	"time"
)

// ruleGrowth is rules G and T: the number of goroutines of one place rises, few of its survivors ever ended, and the
// number of live objects does not explain it.
const ruleGrowth = "growth"

// level judges the place without a dump; 0 is nothing to say. levelListed is not worth a line yet, but dumps begin to
// follow the place, for levelPending wants to know that its goroutines stay and have not each a creator that lives, and levelFiring
// that dumps have decided.
func (p *growthPlace) level(c *growthCensus, now time.Time, t timing) level {
	if c.explained() || !c.growing(now, len(p.layers), t) || float64(c.agedEnded) > maxEnded*float64(c.aged+c.agedEnded) {
		return 0
	}
	switch {
	case c.aged >= enough && c.cohorts >= enough:
		return levelFiring
	case c.aged >= enough/2 && c.cohorts >= enough/2:
		return levelPending
	case c.aged >= pendingSpans && c.cohorts >= pendingSpans:
		return levelListed
	}
	return 0
}

// judgeGrowth gives the growth rule's signals and reports whether a dump is wanted to decide one.
func judgeGrowth(table *growthTable, ev *Evidence, emit func(signal)) (wantDump bool) {
	objects := ev.explaining()
	index := sync.OnceValue(func() *dumpIndex { return indexDump(ev.Dump) })
	for _, p := range table.places {
		if p.sample == nil || len(p.layers) == 0 {
			continue
		}
		c := p.census(ev.At, objects, table.timing)
		l := p.level(&c, ev.At, table.timing)
		if l == 0 && !p.decision.leak { // what was said is followed on, to be taken back if it must
			p.roster.rest(ev.At, table.timing)
			p.decision, p.harmless = decision{}, false
			continue
		}
		if ev.Dump != nil {
			c, l = p.ask(index(), objects, ev.At, table.timing)
		}
		p.decision.refused = ev.DumpRefused
		wantDump = wantDump || p.wantsDump(l, ev.At, table.timing)
		switch {
		case l == levelFiring:
			emit(p.signal(table.main, &c, p.decided(&c, ev.At, table.timing), ev.At))
		case l == levelPending && p.confirmed():
			emit(p.signal(table.main, &c, levelPending, ev.At))
		default:
			p.keepAlive(table, &c, ev.At, emit)
		}
	}
	return wantDump
}

// ask lets a full dump decide, and judges the place anew.
func (p *growthPlace) ask(x *dumpIndex, objects int, now time.Time, t timing) (c growthCensus, l level) {
	p.identify(x, now, t)
	c = p.census(now, objects, t)
	switch l = p.level(&c, now, t); l {
	case levelFiring:
		p.decision = x.decide(p.root, now.Sub(c.oldest), enough)
		p.decision.at = now
		p.harmless = !p.decision.leak
	case levelPending, levelListed:
		p.harmless = !x.decide(p.root, now.Sub(c.oldest), pendingSpans).leak
	}
	return c, l
}

// wantsDump reports whether another dump is due.
func (p *growthPlace) wantsDump(l level, now time.Time, t timing) bool {
	return p.roster.due(now, t) || l == levelFiring && !p.decision.fresh(now, t)
}

// confirmed reports whether dumps have said of the place what they can, and nothing for it.
func (p *growthPlace) confirmed() bool {
	return !p.harmless && (p.roster.compared() || p.decision.refused)
}

// decided is the level of a place that has all that a leak has in the cheap profile.
func (p *growthPlace) decided(c *growthCensus, now time.Time, t timing) level {
	d := &p.decision
	switch {
	case c.aged >= pile && c.cohorts >= enough:
		return levelFiring // so many need no dump
	case d.refused && !d.fresh(now, t):
		return levelListed
	case p.harmless:
		return levelListed
	case !d.fresh(now, t):
		return levelPending
	case !d.leak:
		return levelListed
	case d.running && c.aged < enoughRunning, !p.roster.blind && c.followed < enough:
		return levelPending
	}
	return levelFiring
}

// keepAlive says that a place whose growth has been reported still holds at least half of it, unless as many as it holds were
// seen to end. Without a finding it has no effect: a listed growth is not worth a line.
func (p *growthPlace) keepAlive(table *growthTable, c *growthCensus, now time.Time, emit func(signal)) {
	if _, ended := p.roster.ended.counts(); !p.decision.leak || c.aged < enough/2 || ended >= c.aged {
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
