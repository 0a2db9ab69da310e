package memstats

import (
	"math"
	"time"
)

// Bucket is what is known of one stretch of time.
type Bucket struct {
	// Start is the beginning of the stretch, Step its length.
	Start time.Time
	Step  time.Duration
	// Min, Max and Last are of the values added in it.
	Min, Max, Last float64
}

// Point is a value at a time.
type Point struct {
	Time  time.Time
	Value float64
}

// cell is a bucket in memory, as differences to the series' base: 24 bits of mantissa are exact for a count that is
// less than 16 million away from it, and within 6e-8 of the distance for bytes. An empty cell has a NaN minimum.
type cell struct{ min, max, last float32 }

// Series is a bounded history of one number. Make it with [NewSeries]. It is not safe for concurrent use.
type Series struct {
	layout   *Layout
	cells    []cell
	ceilings []float32 // of the cells of the levels from ceilingLevel on: the highest minimum of the finer level's cells
	base     float64
	last     float64
	samples  int64
	startNS  int64 // first value since the last reset, Unix nanoseconds
	lastNS   int64
}

// NewSeries gives an empty series. The layout is shared, not copied.
func NewSeries(layout *Layout) *Series {
	s := &Series{layout: layout, cells: make([]cell, layout.buckets(0)), ceilings: make([]float32, layout.buckets(ceilingLevel))}
	s.Reset()
	return s
}

// Bytes is the memory that the series takes.
func (s *Series) Bytes() int { return s.layout.Bytes() }

// Reset forgets everything: after a restart, a version change or a gap, old values say nothing about new ones.
func (s *Series) Reset() {
	for i := range s.cells {
		s.cells[i] = emptyCell()
	}
	for i := range s.ceilings {
		s.ceilings[i] = noCeiling
	}
	s.base, s.last, s.samples, s.startNS, s.lastNS = 0, 0, 0, 0, 0
}

// ceilingLevel is the first level that remembers how high the floors of the level before were: an hour whose minutes
// had high floors is told from one with a short burst only by that.
const ceilingLevel = 2

// noCeiling is the ceiling of a cell in which no finer cell has ended yet.
const noCeiling = -math.MaxFloat32

func emptyCell() cell { return cell{min: float32(math.NaN())} }

// maxValue is the largest value, of either sign, that a series takes: the difference of two is far from what a cell
// holds at most, 3.4e38.
const maxValue = 1e37

// inRange is false for NaN, too.
func inRange(v float64) bool { return math.Abs(v) <= maxValue }

// Add records v at the time at. A value older than the newest one is counted at the newest one's time; NaN, infinities
// and what is beyond 1e37 or -1e37 are left out. It does not allocate.
func (s *Series) Add(at time.Time, v float64) {
	if !inRange(v) {
		return
	}
	ns := at.UnixNano()
	if s.samples == 0 {
		s.base, s.startNS, s.lastNS = v, ns, ns
	}
	ns = max(ns, s.lastNS)
	diff := float32(v - s.base)
	offset := 0
	for k, level := range s.layout.levels {
		ring := s.cells[offset : offset+level.Buckets]
		offset += level.Buckets
		s.advance(k, ring, ns)
		ring[slot(ns, level)].add(diff)
	}
	s.last, s.lastNS = v, ns
	s.samples++
}

// advance empties the cells between the newest value's and that of ns, and hands the floor of the one that ended to
// the next level.
func (s *Series) advance(k int, ring []cell, ns int64) {
	level := s.layout.levels[k]
	from, to := index(s.lastNS, level.Step), index(ns, level.Step)
	if from == to {
		return
	}
	if k+1 < len(s.layout.levels) && k+1 >= ceilingLevel {
		if ended := ring[slot(s.lastNS, level)]; !ended.empty() {
			above := s.ceilingsOf(k + 1)
			at := slot(s.lastNS, s.layout.levels[k+1])
			above[at] = max(above[at], ended.min)
		}
	}
	var above []float32
	if k >= ceilingLevel {
		above = s.ceilingsOf(k)
	}
	for i := range min(to-from, int64(len(ring))) {
		at := (to - i) % int64(len(ring))
		ring[at] = emptyCell()
		if above != nil {
			above[at] = noCeiling
		}
	}
}

// ceilingsOf gives the ceilings of a level.
func (s *Series) ceilingsOf(k int) []float32 {
	offset := 0
	for i := ceilingLevel; i < k; i++ {
		offset += s.layout.levels[i].Buckets
	}
	return s.ceilings[offset : offset+s.layout.levels[k].Buckets]
}

// appendCeilings appends, for the cells of the finest level with steps longer than window that began before a time,
// how high the floors of the finer level were; without such a level or such cells, the floors of the finest level
// with steps of at least window.
func (s *Series) appendCeilings(dst []float64, window time.Duration, before time.Time) []float64 {
	offset := 0
	for k, level := range s.layout.levels {
		ring := s.cells[offset : offset+level.Buckets]
		offset += level.Buckets
		if level.Step < window || k < ceilingLevel {
			continue
		}
		above := s.ceilingsOf(k)
		newest, limit := index(s.lastNS, level.Step), before.UnixNano()
		for i := max(0, newest-int64(level.Buckets)+1); i <= newest; i++ {
			at := i % int64(level.Buckets)
			if ring[at].empty() || (i+1)*int64(level.Step) > limit {
				continue
			}
			high := ring[at].min
			if level.Step > window {
				high = max(high, above[at])
			}
			dst = append(dst, s.base+float64(high))
		}
		if len(dst) > 0 || level.Step > window {
			return dst
		}
	}
	return dst
}

func (c *cell) add(v float32) {
	if c.empty() {
		*c = cell{min: v, max: v, last: v}
		return
	}
	c.min, c.max, c.last = min(c.min, v), max(c.max, v), v
}

func (c *cell) empty() bool { return math.IsNaN(float64(c.min)) }

// index is the number of the bucket that holds ns, from the epoch; never negative.
func index(ns int64, step time.Duration) int64 { return max(ns, 0) / int64(step) }

func slot(ns int64, level Level) int64 { return index(ns, level.Step) % int64(level.Buckets) }

// Samples is the number of values since the last reset.
func (s *Series) Samples() int64 { return s.samples }

// Start is the time of the first value since the last reset; the zero time without one.
func (s *Series) Start() time.Time { return s.time(s.startNS) }

// End is the time of the newest value; the zero time without one.
func (s *Series) End() time.Time { return s.time(s.lastNS) }

func (s *Series) time(ns int64) time.Time {
	if s.samples == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Last is the newest value, zero without one.
func (s *Series) Last() float64 { return s.last }

// First is the first value since the last reset, zero without one.
func (s *Series) First() float64 { return s.base }

// extent is the lowest and the highest value that any level still holds.
func (s *Series) extent() (low, high float64) {
	small, large := float32(math.MaxFloat32), float32(-math.MaxFloat32)
	for i := range s.cells {
		if c := &s.cells[i]; !c.empty() {
			small, large = min(small, c.min), max(large, c.max)
		}
	}
	return s.base + float64(small), s.base + float64(large)
}

func (s *Series) age() time.Duration { return time.Duration(s.lastNS - s.startNS) }

// Interval is the average time between values, zero with fewer than two.
func (s *Series) Interval() time.Duration {
	if s.samples < 2 {
		return 0
	}
	return time.Duration((s.lastNS - s.startNS) / (s.samples - 1))
}

// AppendBuckets appends the buckets with values of the finest level that reaches back over the horizon, oldest first.
// It allocates only when dst has no room. With a horizon longer than every level the coarsest is taken.
func (s *Series) AppendBuckets(dst []Bucket, horizon time.Duration) []Bucket {
	if s.samples == 0 {
		return dst
	}
	level, ring := s.level(horizon, 0)
	newest := index(s.lastNS, level.Step)
	count := min(int64(level.Buckets), int64(horizon/level.Step)+1)
	for i := max(0, newest-count+1); i <= newest; i++ {
		c := ring[i%int64(level.Buckets)]
		if c.empty() {
			continue
		}
		dst = append(dst, Bucket{
			Start: time.Unix(0, i*int64(level.Step)), Step: level.Step,
			Min: s.base + float64(c.min), Max: s.base + float64(c.max), Last: s.base + float64(c.last),
		})
	}
	return dst
}

// level picks the finest level that covers the horizon and has steps of at least step.
func (s *Series) level(horizon, step time.Duration) (Level, []cell) {
	offset := 0
	for i, level := range s.layout.levels {
		covers := time.Duration(level.Buckets-1)*level.Step >= horizon && level.Step >= step
		if covers || i == len(s.layout.levels)-1 {
			return level, s.cells[offset : offset+level.Buckets]
		}
		offset += level.Buckets
	}
	return Level{}, nil // a layout has at least one level
}

// AppendFloors appends the minimum of each window of the horizon that has values, oldest first; windows end at the
// newest bucket. A floor is what remains when everything that comes and goes has gone, so a leak shows in it first.
// It allocates only when dst has no room.
func (s *Series) AppendFloors(dst []Point, horizon, window time.Duration) []Point {
	if s.samples == 0 || window <= 0 {
		return dst
	}
	level, ring := s.level(horizon, 0)
	perWindow := max(1, int64((window+level.Step/2)/level.Step))
	newest := index(s.lastNS, level.Step)
	windows := max(1, int64(horizon/level.Step)/perWindow)
	first := max(0, newest-min(int64(level.Buckets), windows*perWindow)+1)
	// Windows are counted from the newest bucket back, so that the oldest, not the newest, is the short one.
	for end := newest - (newest-first)/perWindow*perWindow; end <= newest; end += perWindow {
		low, found := float32(math.Inf(1)), false
		for i := max(first, end-perWindow+1); i <= end; i++ {
			if c := ring[i%int64(level.Buckets)]; !c.empty() {
				low, found = min(low, c.min), true
			}
		}
		if found {
			middle := (2*end - perWindow + 2) * int64(level.Step) / 2
			dst = append(dst, Point{Time: time.Unix(0, middle), Value: s.base + float64(low)})
		}
	}
	return dst
}
