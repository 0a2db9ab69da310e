package probes

import (
	"fmt"
	"time"
)

// boundedSeen is how many entries that end by themselves, open or not any more, are worth a reading: one or two may be a
// watch that was handed on.
const boundedSeen = 3

// boundedReadings gives the largest groups with entries that their span has left open and that end by themselves.
func (l *Ledger) boundedReadings(dst []Reading, groups map[groupKey]*group) []Reading {
	for _, g := range largest(groups, func(g *group) int { return len(g.bounded) }) {
		if len(g.bounded)+g.sample.past.n >= boundedSeen {
			dst = append(dst, l.boundedReading(g))
		}
	}
	return dst
}

func (l *Ledger) boundedReading(g *group) Reading {
	kind := g.sample.kind
	what := kind.Resource
	if l.describe != nil {
		what += " (" + l.describe(g.sample.target) + ")"
	}
	var oldest, ends time.Duration
	for i := range g.bounded {
		oldest, ends = max(oldest, g.bounded[i].age), max(ends, g.bounded[i].ends)
	}
	inAll := len(g.bounded)
	if !g.claimed {
		inAll = g.all // else the reading of the overdue ones has the others
	}
	return Reading{
		Resource: kind.Resource + " left open until they time out", Scope: g.key.scope, Count: float64(len(g.bounded)), InAll: float64(inAll),
		Covariate: l.live(g.key.scope), Bounded: true, Trap: kind.Trap, Advice: kind.Advice,
		Stack: g.sample.site.Frames(), Culprit: g.sample.site.Culprit(l.Options().MainModule),
		Reason: fmt.Sprintf("%d %s were not %s by the work that opened them, which has ended, the oldest %v ago; the server ends each after %v, and %d more have ended: "+
			"their number is the rate of that work times the timeout",
			len(g.bounded), what, kind.Closed, oldest.Round(100*time.Millisecond), ends, g.sample.past.n),
	}
}
