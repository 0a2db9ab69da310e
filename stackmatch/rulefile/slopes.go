package rulefile

import (
	"sync"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
)

// Bounds of what Slopes remembers: at most 4,096 groups with 32 counts each, 2 MB.
const (
	maxSlopes = 4096
	maxCounts = 32
	// slopeWindow is the time over which a slope is taken, minSlopeSpan the shortest for which there is one.
	slopeWindow  = 10 * time.Minute
	minSlopeSpan = 30 * time.Second
	minCounts    = 3
)

// Slopes remembers how many goroutines groups had and gives their growth per minute, as Options.Slope wants it. It knows
// a slope from three counts over half a minute on, and looks back ten minutes. Groups that were not seen for that long
// are forgotten; of more than 4,096 the later ones are not known. The zero value is ready; all methods may be called
// concurrently.
type Slopes struct {
	mu sync.Mutex
	// The fields below are guarded by mu.
	groups map[uint64]*counts
	swept  time.Time // when old groups were last looked for
}

// counts are the last counts of a group.
type counts struct {
	at [maxCounts]time.Time
	n  [maxCounts]int
	// used counts are there, the oldest first.
	used int
}

// Observe notes the groups of a sample or dump that was taken at a time. The times must not go backwards.
func (s *Slopes) Observe(at time.Time, groups []stackmatch.Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range groups {
		s.noteLocked(at, &groups[i])
	}
}

// PerMinute gives the growth of a group in goroutines per minute, by least squares over the counts seen in the last ten
// minutes before the latest one; known is false when there are too few. It fits Options.Slope.
func (s *Slopes) PerMinute(group *stackmatch.Group, _ *stackmatch.Context) (perMinute float64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.groups[group.ID]
	if c == nil {
		return 0, false
	}
	return c.slope()
}

// observe notes one group now and gives its slope: what a Reloader does, which sees only the groups it is asked about.
func (s *Slopes) observe(group *stackmatch.Group, _ *stackmatch.Context) (perMinute float64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.noteLocked(time.Now(), group)
	if c == nil {
		return 0, false
	}
	return c.slope()
}

func (s *Slopes) noteLocked(at time.Time, group *stackmatch.Group) *counts {
	c := s.groups[group.ID]
	if c == nil {
		if len(s.groups) >= maxSlopes && !s.forgetLocked(at) {
			return nil
		}
		if s.groups == nil {
			s.groups = make(map[uint64]*counts)
		}
		c = new(counts)
		s.groups[group.ID] = c
	}
	c.add(at, group.Count)
	return c
}

// forgetLocked drops the groups that were not seen lately and reports whether there is room again. It looks for them once
// a minute, since each group that finds no room asks for it.
func (s *Slopes) forgetLocked(at time.Time) bool {
	if at.Sub(s.swept) < time.Minute {
		return false
	}
	s.swept = at
	for id, c := range s.groups {
		if at.Sub(c.at[c.used-1]) > slopeWindow {
			delete(s.groups, id)
		}
	}
	return len(s.groups) < maxSlopes
}

// add notes a count. Counts that are close together share a place, which the latest has, so that the places cover the window.
func (c *counts) add(at time.Time, n int) {
	const apart = slopeWindow / maxCounts
	old := 0
	for old < c.used && at.Sub(c.at[old]) > slopeWindow {
		old++
	}
	c.drop(old)
	if c.used > 1 && c.at[c.used-1].Sub(c.at[c.used-2]) < apart {
		c.used--
	}
	if c.used == maxCounts {
		c.drop(1)
	}
	c.at[c.used], c.n[c.used] = at, n
	c.used++
}

// drop forgets the first counts.
func (c *counts) drop(n int) {
	if n == 0 {
		return
	}
	copy(c.at[:], c.at[n:c.used])
	copy(c.n[:], c.n[n:c.used])
	c.used -= n
}

// slope fits a line through the counts.
func (c *counts) slope() (perMinute float64, known bool) {
	if c.used < minCounts || c.at[c.used-1].Sub(c.at[0]) < minSlopeSpan {
		return 0, false
	}
	var sumX, sumY, sumXX, sumXY float64
	for i := range c.used {
		x, y := c.at[i].Sub(c.at[0]).Minutes(), float64(c.n[i])
		sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	n := float64(c.used)
	return (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX), true
}
