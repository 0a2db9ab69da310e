package memstats

import (
	"math"
	"time"
)

// TimeToLimit is an estimate of when growth reaches a limit.
type TimeToLimit struct {
	// Earliest, Likely and Latest are counted from the newest value; Latest is zero when the slope's interval reaches
	// down to no growth.
	Earliest time.Duration `json:"earliest"`
	Likely   time.Duration `json:"likely"`
	Latest   time.Duration `json:"latest"`
}

// EstimateTimeToLimit says when a growing series reaches limit, from the slope's confidence interval. ok is false
// without a limit and for every verdict that is not unexplained, significant growth: an extrapolation of noise would
// be a number without a meaning. Memory is killed at the limit in total, so give the limit less what is not in the
// series.
func EstimateTimeToLimit(v Verdict, limit float64) (left TimeToLimit, ok bool) {
	if v.Shape != Growing || v.Outcome == Benign || !(limit > 0) || !(v.PerHour > 0) {
		return TimeToLimit{}, false
	}
	room := max(0, limit-v.Level)
	left.Likely = hoursDuration(room / v.PerHour)
	left.Earliest = left.Likely
	if v.HighPerHour > 0 {
		left.Earliest = hoursDuration(room / v.HighPerHour)
	}
	if v.LowPerHour > 0 {
		left.Latest = hoursDuration(room / v.LowPerHour)
	}
	return left, true
}

// hoursDuration makes a duration of hours, bounded by the longest one.
func hoursDuration(hours float64) time.Duration {
	ns := hours * float64(time.Hour)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
