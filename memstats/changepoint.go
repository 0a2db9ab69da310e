package memstats

import (
	"math"
	"time"
)

// ChangeKind says how a series left its old level.
type ChangeKind uint8

// The kinds of change.
const (
	// NoChange means that neither a step nor a ramp describes the points better than their mean.
	NoChange ChangeKind = iota
	// Step is a jump from one level to another.
	Step
	// Ramp is a level that begins to rise or fall at a constant rate.
	Ramp
)

// String gives "none", "step" or "ramp".
func (k ChangeKind) String() string {
	return [...]string{"none", "step", "ramp"}[min(k, Ramp)]
}

// Change is where a series left its old level.
type Change struct {
	Kind ChangeKind
	// Begin is the time of the first point of the new level (a step), or of the last point before it rises (a ramp).
	Begin time.Time
	// Index is that point's index.
	Index int
	// Before is the level before; After the level behind a step, or the fitted value of the newest point of a ramp.
	Before, After float64
	// Explained is the part of the points' variance that the change explains, 0 to 1.
	Explained float64
}

// FindChange finds the step or ramp that describes points in time order best, by least squares over all places, in
// O(n). A step has two means; a ramp is a level followed by a straight line. With fewer than three points, or equal
// ones, the Kind is NoChange.
func FindChange(points []Point) Change {
	if len(points) < 3 {
		return Change{}
	}
	total := sumsOf(points)
	all := total.spread()
	if all <= 1e-12*(1+total.vv) {
		return Change{}
	}
	step, stepSSE := bestStep(points, total)
	ramp, rampSSE := bestRamp(points, total)
	if step.Kind == NoChange && ramp.Kind == NoChange {
		return Change{}
	}
	best, sse := step, stepSSE
	if rampSSE < stepSSE {
		best, sse = ramp, rampSSE
	}
	best.Begin = points[best.Index].Time
	best.Explained = math.Max(0, 1-sse/all)
	return best
}

// sums are what least squares needs of a run of points, in hours since the first and relative to the first value.
type sums struct {
	n, t, v, tt, tv, vv float64
	origin              Point
}

func (s *sums) add(p Point, sign float64) {
	t, v := p.Time.Sub(s.origin.Time).Hours(), p.Value-s.origin.Value
	s.n += sign
	s.t += sign * t
	s.v += sign * v
	s.tt += sign * t * t
	s.tv += sign * t * v
	s.vv += sign * v * v
}

// spread is the sum of squared differences to the mean.
func (s *sums) spread() float64 {
	if s.n < 1 {
		return 0
	}
	return math.Max(0, s.vv-s.v*s.v/s.n)
}

func sumsOf(points []Point) sums {
	s := sums{origin: points[0]}
	for _, p := range points {
		s.add(p, 1)
	}
	return s
}

func bestStep(points []Point, total sums) (best Change, sse float64) {
	before, after := sums{origin: points[0]}, total
	sse = math.Inf(1)
	for i := 1; i < len(points); i++ {
		before.add(points[i-1], 1)
		after.add(points[i-1], -1)
		if e := before.spread() + after.spread(); e < sse {
			base := points[0].Value
			sse = e
			best = Change{Kind: Step, Index: i, Before: base + before.v/before.n, After: base + after.v/after.n}
		}
	}
	return best, sse
}

// bestRamp fits level + slope*max(0, t - t of point i) for every i.
func bestRamp(points []Point, total sums) (best Change, sse float64) {
	after := total
	sse = math.Inf(1)
	n := total.n
	end := points[len(points)-1].Time.Sub(points[0].Time).Hours()
	for i := range len(points) - 1 {
		knee := points[i].Time.Sub(points[0].Time).Hours()
		after.add(points[i], -1) // the point at the knee itself has x = 0
		x := after.t - knee*after.n
		xx := after.tt - 2*knee*after.t + knee*knee*after.n
		xv := after.tv - knee*after.v
		sxx := xx - x*x/n
		if sxx <= 0 {
			continue
		}
		slope := (xv - x*total.v/n) / sxx
		if e := math.Max(0, total.spread()-slope*slope*sxx); e < sse {
			sse = e
			level := points[0].Value + (total.v-slope*x)/n
			best = Change{Kind: Ramp, Index: i, Before: level, After: level + slope*(end-knee)}
		}
	}
	return best, sse
}
