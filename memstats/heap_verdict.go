package memstats

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// JudgeHeap gives the findings of heap profiles in time order.
//
// With several, a site that carries the growth is a leak when it grew steadily over three or more profiles, or at
// least trebled over two and carries a quarter of the growth; else it is a suspicion. With one profile nothing is
// known of growth: then a telling site (see [Hint]) that holds a quarter of the live heap is a suspicion, and a leak
// when a healthy process has one such structure and this one has a thousand.
func JudgeHeap(profiles []*Heap, options HeapOptions) []Finding {
	switch len(profiles) {
	case 0:
		return nil
	case 1:
		return judgeOneHeap(profiles[0], options)
	}
	var all []Finding
	for _, g := range HeapGrowth(profiles, options) {
		f := Finding{Rule: "heap-site", Verdict: Suspect, Count: int64(g.Objects), PerHour: g.ObjectsPerHour, LastSeen: profiles[len(profiles)-1].Time, FirstSeen: profiles[0].Time}
		if g.Steady || g.Times >= 3 && g.Share >= 0.25 {
			f.Verdict = Leak
		}
		bytes := amountOfBytes(g.Bytes)
		f.Reason = fmt.Sprintf("grew by %s in %.0f objects over %d profiles (%.1f times, %.0f%% of all growth)", bytes, g.Objects, len(profiles), g.Times, 100*g.Share)
		if g.BytesPerHour > 0 {
			f.Reason += fmt.Sprintf(", %s and %.0f objects an hour", amountOfBytes(g.BytesPerHour), g.ObjectsPerHour)
		}
		f.describe(g.Site, g.Blame, g.Hint)
		all = append(all, f)
	}
	return mergeByCulprit(all)
}

func judgeOneHeap(h *Heap, options HeapOptions) []Finding {
	type group struct {
		bytes, objects float64
		largest        Site
		hint           Hint
		blame          Blame
	}
	groups := map[string]*group{}
	for _, s := range h.Sites {
		hint := HintOf(s.Stack)
		if hint.Name == "" || hint.Name == "decoded-object" || s.Sampled < 4 {
			continue // objects alone say nothing: every cache is made of them
		}
		blame := BlameSite(s.Stack, options.Main)
		key := hint.Name + "\x00" + blame.Frame.Function
		g := groups[key]
		if g == nil {
			g = &group{hint: hint, blame: blame}
			groups[key] = g
		}
		g.bytes += s.InuseBytes
		g.objects += s.InuseObjects
		if s.InuseBytes > g.largest.InuseBytes {
			g.largest = s
		}
	}
	live := max(h.InuseBytes(), float64(h.HeapAlloc))
	var all []Finding
	for _, g := range groups {
		share := g.bytes / max(live, 1)
		if share < 0.25 || g.objects < 1000 {
			continue
		}
		f := Finding{Rule: "heap-site", Verdict: Suspect, Count: int64(g.objects), LastSeen: h.Time}
		if g.hint.Once && g.blame.Owner {
			f.Verdict = Leak
		}
		f.Reason = fmt.Sprintf("holds %s, %.0f%% of the live heap, in %.0f objects; one profile does not show growth", amountOfBytes(g.bytes), 100*share, g.objects)
		f.describe(g.largest, g.blame, g.hint)
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Finding) int { return int(b.Verdict) - int(a.Verdict) })
	return all
}

// describe fills in the place: the culprit, what is known and what is not.
func (f *Finding) describe(s Site, blame Blame, hint Hint) {
	f.Culprit = blame.Frame
	f.Stacks = [][]frame.Frame{s.Stack}
	f.Category, f.Advice, f.Trap = "heap-growth", "The site that allocates is known, not who keeps it: look for a map, slice or cache that this function fills.", ""
	if hint.Name != "" {
		f.Category, f.Advice, f.Trap = hint.Category, hint.Advice, hint.Trap
		f.Reason += "; at " + hint.Frame.Function + ": " + hint.Known
		if hint.Unknown != "" {
			f.Reason += ", not known is " + hint.Unknown
		}
	}
	if !blame.Owner {
		f.Reason += "; no frame of the operator's own code is on the stack"
	}
	f.finish(hint.Name)
}

// mergeByCulprit joins findings about one function: a leaked structure has several allocation sites.
func mergeByCulprit(all []Finding) []Finding {
	var merged []Finding
	for _, f := range all {
		i := slices.IndexFunc(merged, func(m Finding) bool { return m.Culprit.Function == f.Culprit.Function })
		if i < 0 {
			merged = append(merged, f)
			continue
		}
		m := &merged[i]
		m.Verdict = max(m.Verdict, f.Verdict)
		m.Reason += "; another site of it: " + f.Reason
		if len(m.Stacks) < 3 {
			m.Stacks = append(m.Stacks, f.Stacks...)
		}
		m.finish(m.Category)
	}
	return merged
}

func amountOfBytes(v float64) string {
	j := Judge{thresholds: Thresholds{Unit: "bytes"}}
	return j.amount(v)
}

// WorstOutcome is the worst verdict of findings, Benign without any.
func WorstOutcome(findings []Finding) (worst Outcome) {
	for _, f := range findings {
		worst = max(worst, f.Verdict)
	}
	return worst
}

// SortHeaps puts profiles into time order: by their time when all of them carry one, as binary ones do, else by how
// much was allocated until then when all of them say so and the number of GC cycles agrees, as text ones of one process
// do. Otherwise they keep their order.
func SortHeaps(profiles []*Heap) {
	if !slices.ContainsFunc(profiles, func(h *Heap) bool { return h.Time.IsZero() }) {
		slices.SortStableFunc(profiles, func(a, b *Heap) int { return a.Time.Compare(b.Time) })
		return
	}
	if slices.ContainsFunc(profiles, func(h *Heap) bool { return h.TotalAlloc == 0 }) {
		return
	}
	sorted := slices.Clone(profiles)
	slices.SortStableFunc(sorted, func(a, b *Heap) int { return cmp.Compare(a.TotalAlloc, b.TotalAlloc) })
	if slices.IsSortedFunc(sorted, func(a, b *Heap) int { return cmp.Compare(a.NumGC, b.NumGC) }) {
		copy(profiles, sorted)
	}
}
