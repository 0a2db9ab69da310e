package stackmatch

import (
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// growthPredicates compare a group with itself in earlier dumps. With one dump none of them holds.
func growthPredicates() []Predicate {
	return []Predicate{
		{Name: "grown", Doc: "The stack has at least three and a quarter more goroutines than in the first dump and never fewer in between, and goroutines were started for it, not only moved there; of a new stack there must be ten, and the first dump must not be of a process that was just starting.", holds: func(g *Group, in *Context) bool {
			return in.grown(g)
		}},
		{Name: "doubled-user-code", Doc: "As grown-user-code, and the stack has twice as many goroutines as in the first dump, which has some, and twenty more; profiles need three dumps.", holds: func(g *Group, in *Context) bool {
			return in.doubled(g) && userCode(g, in)
		}},
		{Name: "test-timed-out", Doc: "The dump is that of a test binary whose time is up.", holds: func(_ *Group, in *Context) bool {
			return in.census.alarms > 0
		}},
		{Name: "grown-user-code", Doc: "As grown, and the stack or its creator is user code.", holds: func(g *Group, in *Context) bool {
			return in.grown(g) && userCode(g, in)
		}},
		{Name: "grown-parked", Doc: "As grown-user-code, and half of the group has been parked for ten minutes or longer; a stack that is new since the first dump must have come bit by bit and still come, as pools do not.", holds: grownParked},
	}
}

// shapeKey identifies a stack across dumps of one process: by functions, whatever the lines and the labels.
func shapeKey(g *Group) string {
	var b strings.Builder
	for i := range g.Stack {
		b.WriteString(plainName(g.Stack[i].Function))
		b.WriteByte('\n')
	}
	return b.String()
}

// shapeCounts sums the goroutines of each stack.
func shapeCounts(groups []Group) map[string]int {
	out := make(map[string]int, len(groups))
	for i := range groups {
		out[shapeKey(&groups[i])] += groups[i].Count
	}
	return out
}

// history gives the counts of a group's stack in the earlier dumps and now.
func (c *Context) history(g *Group) []int {
	if len(c.earlier) == 0 {
		return []int{g.Count}
	}
	key := shapeKey(g)
	out := make([]int, 0, len(c.earlier)+1)
	for _, before := range c.earlier {
		out = append(out, before[key])
	}
	return append(out, c.now[key])
}

// minSlopeSpan is the shortest time between the first and the last dump for which a slope says something.
const minSlopeSpan = 30 * time.Second

// PerMinute gives the growth of a group's stack in goroutines per minute, by least squares over the earlier dumps and
// this one; known is false when there is no earlier one, when their times are unknown or when they are all within half a
// minute. With a nil context it is never known.
func (c *Context) PerMinute(g *Group) (perMinute float64, known bool) {
	if c == nil || len(c.times) < 2 || c.times[len(c.times)-1].Sub(c.times[0]) < minSlopeSpan {
		return 0, false
	}
	var sumX, sumY, sumXX, sumXY float64
	for i, count := range c.history(g) {
		x, y := c.times[i].Sub(c.times[0]).Minutes(), float64(count)
		sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	n := float64(len(c.times))
	return (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX), true
}

// grown reports whether a stack has grown for good: clearly above the first dump and monotone.
func (c *Context) grown(g *Group) bool {
	if len(c.earlier) == 0 {
		return false
	}
	counts := c.history(g)
	if counts[0] == 0 && (g.Count < 10 || c.warmUp && len(counts) == 2) {
		return false // everything is new to a process that has just started
	}
	return grownCounts(counts) && c.started.covers(counts[len(counts)-1]-counts[0], g)
}

// growth is how many goroutines were started for each function in the first dump and are there now.
type growth struct{ first, now map[string]int }

// rootCounts sums the goroutines by the function that they were started for.
func rootCounts(groups []Group) map[string]int {
	out := make(map[string]int)
	for i := range groups {
		out[startedFor(&groups[i])] += groups[i].Count
	}
	return out
}

// startedFor names the function that a group's goroutines were started for; empty when it has no frames.
func startedFor(g *Group) string { return plainName(frame.Root(g.Stack).Function) }

// covers reports whether half of the growth of some groups at least is of goroutines that were started since. The workers
// of a pool are now in this stack and now in that one without being more.
func (x growth) covers(more int, groups ...*Group) bool {
	seen := make(map[string]bool, len(groups))
	total := 0
	for _, g := range groups {
		root := startedFor(g)
		if root == "" {
			return true
		}
		if !seen[root] {
			seen[root] = true
			total += x.now[root] - x.first[root]
		}
	}
	return total*2 >= more
}

// doubled reports whether a stack has grown to twice as many and twenty more: load comes and goes by less. Profiles,
// which do not tell old goroutines from new ones, need a third dump against bursts.
func (c *Context) doubled(g *Group) bool {
	if !c.grown(g) || len(c.members) == 0 && len(c.earlier) < 2 {
		return false
	}
	counts := c.history(g)
	first, last := counts[0], counts[len(counts)-1]
	return first > 0 && last >= 2*first && last-first >= 20
}

// startedAfter reports whether the first dump was taken while the process started: it has less than half of the
// stacks.
func startedAfter(first, now map[string]int) bool {
	known := 0
	for key := range now {
		if first[key] > 0 {
			known++
		}
	}
	return known*2 < len(now)
}

// grownCounts is grown on numbers: at least three more and a quarter more than at first, and never falling by more than
// a twentieth, so that a burst that has ended does not count.
func grownCounts(counts []int) bool {
	first, last := counts[0], counts[len(counts)-1]
	if last-first < 3 || (last-first)*4 < first {
		return false
	}
	for i := 1; i < len(counts); i++ {
		if counts[i] < counts[i-1]-counts[i-1]/20 {
			return false
		}
	}
	return true
}

// grownParked reports whether a group of user code has grown whose old members were never woken.
func grownParked(g *Group, in *Context) bool {
	if g.Median < minutes(10) || !in.grown(g) || !userCode(g, in) {
		return false
	}
	counts := in.history(g)
	if counts[0] > 0 {
		return true
	}
	return !plateau(counts) && g.Median*5 < g.Oldest*4
}

// plateau reports whether a stack that the first dump does not have has stood still since the one before the last.
func plateau(counts []int) bool {
	n := len(counts)
	return n > 2 && counts[0] == 0 && counts[n-1] <= counts[n-2]
}
