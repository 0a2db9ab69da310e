package memstats

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"
)

// Level is one resolution of a [Series]: the last Buckets buckets of Step each.
type Level struct {
	Step    time.Duration
	Buckets int
}

// Layout is the resolutions of a [Series], finest first. It is immutable: any number of series share one.
type Layout struct{ levels []Level }

// ErrLayout is the reason why [NewLayout] refuses levels: there are none, one has no bucket, or the steps do not
// grow.
var ErrLayout = errors.New("memstats: bad layout")

// NewLayout checks levels and makes a layout of them.
func NewLayout(levels ...Level) (*Layout, error) {
	step := time.Duration(0)
	for i, level := range levels {
		if level.Step <= step || level.Buckets < 1 {
			return nil, fmt.Errorf("%w: level %d has step %v after %v, and %d buckets", ErrLayout, i, level.Step, step, level.Buckets)
		}
		step = level.Step
	}
	if len(levels) == 0 {
		return nil, fmt.Errorf("%w: no levels", ErrLayout)
	}
	return &Layout{levels: slices.Clone(levels)}, nil
}

// Compact is the layout for thousands of series, such as one per goroutine stack: seconds for two minutes, minutes
// for twenty hours, hours for six days, in 1.7 KiB. Make it once and share it.
func Compact() *Layout {
	return &Layout{levels: []Level{{10 * time.Second, 12}, {2 * time.Minute, 32}, {30 * time.Minute, 42}, {6 * time.Hour, 26}}}
}

// Full is the layout for the process's own numbers: seconds for ten minutes, minutes for a day, hours for two weeks,
// in 10 KiB. Make it once and share it.
func Full() *Layout {
	return &Layout{levels: []Level{{10 * time.Second, 60}, {time.Minute, 120}, {10 * time.Minute, 150}, {time.Hour, 360}}}
}

// Scaled gives a layout whose steps are shorter by a factor, for tests and demonstrations; a factor of one or less
// changes nothing. A [Judge] of such series needs the same factor in [Thresholds].Scale.
func (l *Layout) Scaled(factor float64) *Layout {
	scaled := &Layout{levels: slices.Clone(l.levels)}
	if !(factor > 1) {
		return scaled
	}
	for i := range scaled.levels {
		scaled.levels[i].Step = max(time.Duration(i+1), time.Duration(float64(l.levels[i].Step)/factor))
	}
	return scaled
}

// Levels gives a copy of the levels.
func (l *Layout) Levels() []Level { return slices.Clone(l.levels) }

// Bytes is the memory that one series of this layout takes, its header included and the shared layout not.
func (l *Layout) Bytes() int {
	return int(unsafe.Sizeof(Series{})) + l.buckets(0)*int(unsafe.Sizeof(cell{})) + l.buckets(ceilingLevel)*int(unsafe.Sizeof(float32(0)))
}

// buckets counts the buckets from a level on.
func (l *Layout) buckets(from int) (n int) {
	for k, level := range l.levels {
		if k >= from {
			n += level.Buckets
		}
	}
	return n
}
