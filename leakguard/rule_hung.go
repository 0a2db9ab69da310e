package leakguard

import (
	"fmt"
	"strings"
	"time"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch"
)

// wrapper is the start of the name of the function that runs a reconcile in its span.
const wrapper = "github.com/leakguard/leakguard/leakguard.(*scoped"

// ruleHung is a reconcile that does not return: a call without a deadline, or a lock.
const ruleHung = "in-flight"

// maxOpen bounds the spans in flight that are followed.
const maxOpen = 4096

// hungTable follows the spans in flight. A controller is allowed what its reconciles have taken before.
type hungTable struct {
	timing  timing
	main    string
	open    map[uint64]probes.Open   // of the last tick
	longest map[string]time.Duration // by scope: the longest span that ended
	dropped uint64
}

func newHungTable(t timing, main string) *hungTable {
	return &hungTable{timing: t, main: main, open: map[uint64]probes.Open{}, longest: map[string]time.Duration{}}
}

// judge lists the controllers with a span that is in flight for ten minutes, and alarms about those with one in flight for
// twenty and three times as long as any that ended.
func (h *hungTable) judge(ev *Evidence, emit func(signal)) {
	for seq, o := range h.open {
		if !ev.inFlight(seq) {
			delete(h.open, seq)
			h.longest[o.Scope] = max(h.longest[o.Scope], ev.At.Sub(o.Since))
		}
	}
	oldest, counts := map[string]probes.Open{}, map[string]int{}
	for _, o := range ev.InFlight {
		if isHandlers(o.Scope) {
			continue
		}
		if _, known := h.open[o.ID.Seq]; !known && len(h.open) >= maxOpen {
			h.dropped++
			continue
		}
		h.open[o.ID.Seq] = o
		if ev.At.Sub(o.Since) < h.timing.hung {
			continue
		}
		counts[o.Scope]++
		if x, ok := oldest[o.Scope]; !ok || o.Since.Before(x.Since) {
			oldest[o.Scope] = o
		}
	}
	for scope, o := range oldest {
		if g := groupOf(ev.Groups, o.ID); g != nil {
			emit(h.signal(scope, counts[scope], ev.At.Sub(o.Since), g, ev.At))
		}
	}
}

// groupOf finds the goroutine that runs a span: the one with its label that has the reconciler's wrapper on its stack, or
// else any.
func groupOf(groups []stackmatch.Group, id probes.SpanID) (found *stackmatch.Group) {
	value := id.String()
	for i := range groups {
		if v, ok := groups[i].Label(probes.LabelReconcile); !ok || v != value {
			continue
		}
		found = &groups[i]
		for _, f := range found.Stack {
			if strings.HasPrefix(f.Function, wrapper) {
				return found
			}
		}
	}
	return found
}

func (h *hungTable) signal(scope string, count int, age time.Duration, g *stackmatch.Group, now time.Time) signal {
	usual := h.longest[scope]
	s := signal{
		rule: ruleHung, category: "reconcile-hung", tier: TierListed, level: levelListed, controller: scope, count: int64(count),
		waitReason: g.WaitReason, since: now.Add(-age), stack: g.Stack, sample: g,
		reason: fmt.Sprintf("%d reconciles are in flight for %s and less, the longest that ended took %s", count, age.Round(time.Second), usual.Round(time.Second)),
		advice: "give the call a context with a deadline; for a lock, find its holder",
	}
	s.culprit, s.pattern = blame(g.Stack, g.CreatedBy, h.main)
	if age >= 2*h.timing.hung && age >= outlives*usual {
		s.tier, s.level = TierLikely, levelFiring
	}
	return s
}
