package stackmatch

import (
	"cmp"
	"slices"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Trend is what became of the goroutines with one stack from dump to dump.
type Trend string

// The trends. Two dumps cannot tell TrendStaircase and TrendBurst from TrendGrowing: they need a third.
const (
	// TrendSteady is as many as before, give or take a tenth and two.
	TrendSteady Trend = "steady"
	// TrendNew is a stack that the first dump does not have.
	TrendNew Trend = "new"
	// TrendGone is a stack that the last dump does not have.
	TrendGone Trend = "gone"
	// TrendGrowing is more than at first: each step up, or only two dumps.
	TrendGrowing Trend = "growing"
	// TrendStaircase is more than at first with flat stretches, never down.
	TrendStaircase Trend = "staircase"
	// TrendBurst is a rise that has ended.
	TrendBurst Trend = "burst"
	// TrendShrinking is fewer than at first.
	TrendShrinking Trend = "shrinking"
)

// Change is the history of the goroutines with one stack.
type Change struct {
	// Function is the culprit, or else the function that the goroutines were started for.
	Function string `json:"function"`
	// WaitReason is what they wait for in the last dump that has them.
	WaitReason string `json:"wait_reason,omitempty"`
	// Counts are their numbers, one for each dump.
	Counts []int `json:"counts"`
	// Trend says what became of them.
	Trend Trend `json:"trend"`
	// Stack is their stack, leaf first.
	Stack []frame.Frame `json:"stack"`
}

// Changes compares the dumps of one process, in the order they were taken, stack by stack: those that changed most come
// first, and steady ones are left out.
func Changes(dumps []*Dump, main string) []Change {
	index := make(map[string]int)
	var out []Change
	for at, d := range dumps {
		if d == nil {
			continue
		}
		if main == "" {
			main = GuessMain(d)
		}
		groups := d.GroupBy(main)
		for i := range groups {
			g := &groups[i]
			key := shapeKey(g)
			k, ok := index[key]
			if !ok {
				k = len(out)
				index[key] = k
				out = append(out, Change{Function: changeName(g), Counts: make([]int, len(dumps)), Stack: g.Stack})
			}
			out[k].Counts[at] += g.Count
			out[k].WaitReason = g.WaitReason
		}
	}
	for i := range out {
		out[i].Trend = trendOf(out[i].Counts)
	}
	out = slices.DeleteFunc(out, func(c Change) bool { return c.Trend == TrendSteady })
	slices.SortStableFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.moved(), a.moved()), cmp.Compare(a.Function, b.Function))
	})
	return out
}

// moved is how far the counts are from the first one at the end or at the peak.
func (c *Change) moved() int {
	first, last := c.Counts[0], c.Counts[len(c.Counts)-1]
	return max(last-first, first-last, slices.Max(c.Counts)-first)
}

// changeName is the function to show for a group.
func changeName(g *Group) string {
	switch {
	case !g.Culprit.IsZero():
		return displayFrame(g.Culprit).Function
	case !g.Root.IsZero():
		return displayFrame(g.Root).Function
	case len(g.Stack) > 0:
		return displayFrame(g.Stack[0]).Function
	}
	return "no frames"
}

// trendOf names a series of counts.
func trendOf(counts []int) Trend {
	if len(counts) < 2 {
		return TrendSteady
	}
	first, last, peak := counts[0], counts[len(counts)-1], slices.Max(counts)
	near := func(a, b int) bool { return max(a-b, b-a) <= max(a, b)/10+2 }
	switch {
	case near(first, last) && near(peak, first):
		return TrendSteady
	case last < first && near(peak, first):
		return shrink(last)
	case last < peak-(peak-first)/2:
		return TrendBurst
	case last < first:
		return shrink(last)
	}
	return riseOf(counts)
}

// riseOf names a series that ends higher than it began.
func riseOf(counts []int) Trend {
	switch {
	case len(counts) > 2 && stepped(counts):
		return TrendStaircase
	case counts[0] == 0:
		return TrendNew
	}
	return TrendGrowing
}

func shrink(last int) Trend {
	if last == 0 {
		return TrendGone
	}
	return TrendShrinking
}

// stepped reports whether counts go up with at least one flat stretch and never clearly down.
func stepped(counts []int) bool {
	flat := false
	for i := 1; i < len(counts); i++ {
		if counts[i] < counts[i-1]-counts[i-1]/20 {
			return false
		}
		flat = flat || counts[i] <= counts[i-1]+counts[i-1]/20
	}
	return flat
}
