package memstats

import (
	"fmt"
	"math"
	"time"
)

// hiddenGrowth looks beside a load that the series follows closely up and down: what is left may grow although the
// series itself, which the load moves more, does not yet.
func (j *Judge) hiddenGrowth(s *Series, covariates []Covariate) (Verdict, bool) {
	for _, c := range covariates {
		if c.Kind != Load || c.Series == nil {
			continue
		}
		for _, h := range j.horizons[1:] {
			if v, ok := j.hiddenAt(s, c, h); ok {
				return v, true
			}
		}
	}
	return Verdict{}, false
}

func (j *Judge) hiddenAt(s *Series, c Covariate, h horizon) (Verdict, bool) {
	j.floors = j.usable(s, j.floors[:0], h)
	if len(j.floors) < h.need {
		return Verdict{}, false
	}
	if !j.cameBack(c.Series, h) {
		return Verdict{}, false
	}
	unit, _ := j.longUnit(s, c.Series, h, 0)
	if unit <= 0 {
		return Verdict{}, false
	}
	j.kept = append(j.kept[:0], j.floors...)
	rest := j.residual(j.kept, c.Series, h, unit)
	if len(rest) < h.need {
		return Verdict{}, false
	}
	g := j.test(rest, nil)
	moved := unit * j.swing(c.Series, h, 0)
	if !g.grows || j.noise(rest, g.trend) > 0.1*moved {
		return Verdict{}, false
	}
	v := j.growing(s, h, g, explanation{})
	v.Since = g.begin
	v.Reason += fmt.Sprintf(" (after taking away %s per %s, which it follows)", j.amount(unit), c.Name)
	return v, true
}

// cameBack says whether a load went both up and down by most of its range within a horizon, so that its part in a
// series can be told from the part of time.
func (j *Judge) cameBack(load *Series, h horizon) bool {
	j.other = load.AppendFloors(j.other[:0], h.span, h.window)
	var up, down float64
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range j.other {
		low, high = min(low, p.Value), max(high, p.Value)
		up, down = max(up, p.Value-low), max(down, high-p.Value)
	}
	return high > low && min(up, down) >= 0.6*(high-low)
}

// burst is a stretch in which a load is far above its usual value.
type burst struct{ begin, end time.Time }

// retention looks for steps that bursts of load leave behind: the load falls back, the series does not. One is waste
// with a bound, as a table that does not shrink; two that add up are a leak.
func (j *Judge) retention(s *Series, covariates []Covariate) (Verdict, bool) {
	for _, c := range covariates {
		if c.Kind != Load || c.Series == nil {
			continue
		}
		if low, high := c.Series.extent(); high < burstFactor*max(1, low) {
			continue // no burst at any horizon: no median is below the lowest value
		}
		for i := len(j.horizons) - 1; i >= 0; i-- {
			h := j.horizons[i]
			h.window /= 4
			if v, ok := j.retained(s, c, h, covariates); ok {
				return v, true
			}
		}
		// A level may hold more than the horizons that it serves, at a finer step than the next horizon has.
		for _, level := range s.layout.levels {
			whole := time.Duration(level.Buckets-1) * level.Step
			if v, ok := j.retained(s, c, horizon{span: whole, window: max(level.Step, whole/48)}, covariates); ok {
				return v, true
			}
		}
	}
	return Verdict{}, false
}

func (j *Judge) retained(s *Series, c Covariate, h horizon, covariates []Covariate) (Verdict, bool) {
	bursts := j.bursts(c.Series, h)
	if len(bursts) == 0 {
		return Verdict{}, false
	}
	levels, ok := j.levelsBetween(s, bursts, h, covariates)
	if !ok {
		return Verdict{}, false
	}
	steps, since := 0, time.Time{}
	for i := 1; i < len(levels); i++ {
		switch rise := levels[i] - levels[i-1]; {
		case rise >= max(j.thresholds.MinRise, 0.2*math.Abs(levels[i-1])):
			if steps++; steps == 1 {
				since = bursts[i-1].begin
			}
		case rise < -j.thresholds.MinRise:
			return Verdict{}, false
		}
	}
	if steps == 0 {
		return Verdict{}, false
	}
	total := levels[len(levels)-1] - levels[0]
	v := Verdict{Shape: Stepped, Outcome: Suspect, Horizon: h.span, P: 1, Rise: total, Level: levels[len(levels)-1], Since: since, Samples: s.Samples()}
	v.Reason = fmt.Sprintf("a burst of %s left %s behind, which did not go when the burst ended", c.Name, j.amount(total))
	if steps > 1 {
		v.Outcome = Leak
		v.Reason = fmt.Sprintf("%d bursts of %s left %s behind step by step; nothing of it went when they ended", steps, c.Name, j.amount(total))
	}
	return v, true
}

// levelsBetween gives the levels of a series before, between and after bursts. ok is false when a level cannot be
// told: too few windows, or, when the GC cycles are known, too few of them for the garbage of the burst to be gone.
func (j *Judge) levelsBetween(s *Series, bursts []burst, h horizon, covariates []Covariate) (levels []float64, ok bool) {
	j.floors = s.AppendFloors(j.floors[:0], h.span, h.window)
	from := time.Time{}
	for i := range len(bursts) + 1 {
		to := s.End().Add(h.window)
		if i < len(bursts) {
			to = bursts[i].begin
		}
		level, ok := j.floorBetween(from, to, h)
		if !ok || i > 0 && !j.collected(from, to, h, covariates) {
			return nil, false
		}
		levels = append(levels, level)
		if i < len(bursts) {
			from = bursts[i].end
		}
	}
	return levels, true
}

// collected says whether three GC cycles passed between two times, as far as they are known.
func (j *Judge) collected(from, to time.Time, h horizon, covariates []Covariate) bool {
	for _, c := range covariates {
		if c.Kind != Cycles || c.Series == nil {
			continue
		}
		j.buckets = c.Series.AppendBuckets(j.buckets[:0], h.span)
		first, last := math.Inf(1), math.Inf(-1)
		for _, b := range j.buckets {
			if !b.Start.Before(from) && b.Start.Before(to) {
				first, last = min(first, b.Min), max(last, b.Last)
			}
		}
		return last-first >= 3
	}
	return true
}

// burstFactor is how many times its median, or one, a load must reach to be in a burst.
const burstFactor = 4

// bursts finds where the load's maximum is burstFactor times its median or more, bounded at both sides.
func (j *Judge) bursts(load *Series, h horizon) []burst {
	j.buckets = load.AppendBuckets(j.buckets[:0], h.span)
	if len(j.buckets) < 12 {
		return nil
	}
	j.scratch = j.scratch[:0]
	for _, b := range j.buckets {
		j.scratch = append(j.scratch, b.Last)
	}
	high := burstFactor * max(1, median(j.scratch))
	var all []burst
	for i, b := range j.buckets {
		switch {
		case b.Max < high:
		case len(all) > 0 && i > 0 && j.buckets[i-1].Max >= high:
			all[len(all)-1].end = b.Start.Add(b.Step)
		default:
			all = append(all, burst{begin: b.Start, end: b.Start.Add(b.Step)})
		}
	}
	return all
}

// floorBetween is the median floor strictly between two times, with a window's distance to both; ok is false with
// fewer than two windows there.
func (j *Judge) floorBetween(from, to time.Time, h horizon) (float64, bool) {
	j.scratch = j.scratch[:0]
	for _, p := range j.floors {
		if p.Time.Add(-h.window).After(from) && p.Time.Add(h.window).Before(to) {
			j.scratch = append(j.scratch, p.Value)
		}
	}
	if len(j.scratch) < 2 {
		return 0, false
	}
	return median(j.scratch), true
}
