package leakguard

import (
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// level is how far one rule would let a finding go on the evidence of one tick.
type level uint8

const (
	levelListed level = iota + 1
	levelPending
	levelFiring
)

// signal is what one rule says of one culprit at one tick. Signals about one culprit become one finding.
type signal struct {
	rule, category string
	tier           Tier
	level          level
	controller     string
	culprit        frame.Frame
	pattern        bool // the culprit is a pattern's name: the code to fix is in no frame
	count          int64
	young          int64 // of the count of orphans, those within the grace: they may yet end
	soon           bool  // it brings the process down within a day
	perHour        float64
	waitReason     string
	since          time.Time
	reason, advice string
	trap           string
	stack          []frame.Frame
	sample         *stackmatch.Group // the largest group behind it; nil for signals that are not about goroutines

	// for the joining
	root     string // the function that the goroutines were started for; empty for signals that are not about goroutines
	settled  int    // how many goroutines are past the grace; for what a probe counts, by how many it has risen
	resource string // what a probe counts; empty for signals that are not its
	owned    int    // of what a probe counts, how many there are in all at its place, lost or not: what serves them is explained
	bounded  bool   // known to end by itself
	parts    [][]frame.Frame
}

// stronger orders two signals about one culprit: the one to speak for the finding first.
func (s *signal) stronger(other *signal) bool {
	if s.level != other.level {
		return s.level > other.level
	}
	if s.tier != other.tier {
		return s.tier.rank() < other.tier.rank()
	}
	return s.count > other.count
}

// perHour is the rate at which count units have come since the first of them.
func perHour(count int, first, now time.Time) float64 {
	span := now.Sub(first)
	if count < 2 || span <= 0 {
		return 0
	}
	return float64(count) / span.Hours()
}
