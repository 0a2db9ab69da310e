package memstats

import (
	"fmt"
	"time"
)

// Shape is what a series looks like.
type Shape uint8

// The shapes.
const (
	// Flat moves within its noise.
	Flat Shape = iota
	// Growing rises for ever: its floor rises in every part of a horizon, is still rising and never came down. A
	// staircase of steps hours apart is growing too, at a long horizon.
	Growing
	// Stepped went from one level to a higher one, once or a few times, and stayed.
	Stepped
	// Bursting leaves its level for a while and comes back.
	Bursting
	// SawTooth rises and falls again and again, as a heap does between GC cycles.
	SawTooth
	// WarmingUp rises ever slower, towards a plateau.
	WarmingUp
	// Shrinking falls.
	Shrinking
)

// String gives "flat", "growing", "stepped", "bursting", "saw-tooth", "warming-up" or "shrinking".
func (s Shape) String() string {
	return [...]string{"flat", "growing", "stepped", "bursting", "saw-tooth", "warming-up", "shrinking"}[min(s, Shrinking)]
}

// MarshalText writes the shape as String gives it.
func (s Shape) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Outcome is what a verdict means for the process.
type Outcome uint8

// The outcomes, in rising order.
const (
	// Benign has nothing to report.
	Benign Outcome = iota
	// Suspect is too early to tell, or waste with a bound.
	Suspect
	// Leak grows without an end in sight.
	Leak
)

// String gives "benign", "suspect" or "leak".
func (o Outcome) String() string {
	return [...]string{"benign", "suspect", "leak"}[min(o, Leak)]
}

// MarshalText writes the outcome as String gives it.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Verdict is what [Judge.Judge] says of a series, with the numbers behind it.
type Verdict struct {
	Shape   Shape
	Outcome Outcome
	// PerHour is the slope of the floors, LowPerHour and HighPerHour its 95 % confidence interval.
	PerHour, LowPerHour, HighPerHour float64
	// P is the probability of such a trend by chance alone (Mann–Kendall); 1 when no horizon had enough points.
	P float64
	// Rise is by how much the floors rose over the horizon.
	Rise float64
	// Level is the newest floor.
	Level float64
	// Since is when the growth or the step began; zero for other shapes.
	Since time.Time
	// Horizon is the stretch of time that decided; zero when there is too little of it.
	Horizon time.Duration
	// Samples is how many values the series had; NeedSamples how many more it needs before it can be called growing,
	// at the present interval; zero when it has enough.
	Samples     int64
	NeedSamples int64
	// ExplainedBy names the covariate that the series follows, empty when none does; PerUnit is how much of it there
	// is per unit of that covariate. For a growing series that follows a work counter, PerUnit is how much each unit
	// of work leaves behind.
	ExplainedBy string
	PerUnit     float64
	// Reason is a sentence with the numbers.
	Reason string
}

// String gives the shape, the outcome and the reason.
func (v Verdict) String() string {
	return fmt.Sprintf("%s (%s): %s", v.Shape, v.Outcome, v.Reason)
}
