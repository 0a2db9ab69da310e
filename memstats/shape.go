package memstats

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// growing writes the verdict on growth that nothing explains.
func (j *Judge) growing(s *Series, h horizon, g growth, e explanation) Verdict {
	v := Verdict{
		Shape: Growing, Outcome: Leak, Horizon: h.span, P: g.trend.P, Rise: g.rise, Level: g.last, Samples: s.Samples(),
		PerHour: g.trend.PerHour, LowPerHour: g.trend.LowPerHour, HighPerHour: g.trend.HighPerHour,
		Since: j.since(s, h, g),
	}
	v.Reason = fmt.Sprintf("the floor rose by %s in %s (%s an hour, chance %.1g) and still rises",
		j.amount(g.rise), span(h.span), j.amount(g.trend.PerHour), g.trend.P)
	if e.work {
		v.PerUnit = e.perUnit
		exact := ""
		if e.exact {
			exact = " exactly"
		}
		v.Reason += fmt.Sprintf("; it grows with %s: %s each%s", e.by, j.amount(e.perUnit), exact)
	}
	return v
}

// explainedVerdict writes the verdict on growth that follows a load.
func (j *Judge) explainedVerdict(s *Series, h horizon, g growth, e explanation) Verdict {
	return Verdict{
		Shape: Growing, Outcome: Benign, Horizon: h.span, P: g.trend.P, Rise: g.rise, Level: g.last, Samples: s.Samples(),
		PerHour: g.trend.PerHour, LowPerHour: g.trend.LowPerHour, HighPerHour: g.trend.HighPerHour,
		Since: j.since(s, h, g), ExplainedBy: e.by, PerUnit: e.perUnit,
		Reason: fmt.Sprintf("rises by %s an hour, explained by %s: %s each, and not rising per unit", j.amount(g.trend.PerHour), e.by, j.amount(e.perUnit)),
	}
}

// since finds when the growth began: the knee of the longest history that there is.
func (j *Judge) since(s *Series, h horizon, g growth) time.Time {
	best := g.begin
	for _, l := range j.horizons {
		if l.span < h.span {
			continue
		}
		j.other = s.AppendFloors(j.other[:0], l.span, l.window)
		if len(j.other) < 5 {
			continue
		}
		change := FindChange(j.other)
		if change.Kind == NoChange || change.Explained < 0.8 {
			continue
		}
		best = change.Begin
		if change.Index > 0 {
			break
		}
	}
	return best
}

// shape names what a series that does not grow looks like, on the shortest horizon that holds all of it.
func (j *Judge) shape(s *Series, v Verdict) Verdict {
	age := s.End().Sub(s.Start())
	h := horizon{span: max(age, j.thresholds.scaled(time.Minute)), window: max(age/24, j.thresholds.scaled(time.Second))}
	v.Horizon = h.span
	j.buckets = s.AppendBuckets(j.buckets[:0], h.span)
	j.floors = s.AppendFloors(j.floors[:0], h.span, h.window)
	g := growth{}
	if len(j.floors) >= 2 {
		g = j.test(j.floors, nil)
		g.trend = j.fitter.fit(j.floors)
		g.rise = g.trend.PerHour * j.floors[len(j.floors)-1].Time.Sub(j.floors[0].Time).Hours()
		v.PerHour, v.LowPerHour, v.HighPerHour, v.Rise, v.Level = g.trend.PerHour, g.trend.LowPerHour, g.trend.HighPerHour, g.rise, g.last
	}
	if early, ok := j.early(s, v, age); ok {
		return early
	}
	low, high := j.extent()
	least := max(j.thresholds.MinRise, j.thresholds.MinRelative*math.Abs(low))
	if high-low < least || len(j.floors) < 5 {
		v.Shape, v.Reason = Flat, "moves within its noise"
		return v
	}
	return j.moving(v, g, least)
}

// extent is the lowest and the highest value of the buckets.
func (j *Judge) extent() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, b := range j.buckets {
		low, high = min(low, b.Min), max(high, b.Max)
	}
	return low, high
}

// early says of a young series that rises how much longer it must be watched.
func (j *Judge) early(s *Series, v Verdict, age time.Duration) (Verdict, bool) {
	first := j.horizons[0]
	interval := s.Interval()
	if interval <= 0 {
		interval = first.window // one value says nothing of it
	}
	for i, h := range j.horizons {
		first = h
		if h.window >= interval && (i > 0 || !j.thresholds.Garbage) {
			break
		}
	}
	need := j.thresholds.WarmUp + time.Duration(first.need)*first.window
	if age >= need {
		return v, false
	}
	v.NeedSamples = int64((need - age + interval - 1) / interval)
	if s.Last()-s.First() < max(j.thresholds.MinRise, j.thresholds.MinRelative*math.Abs(s.First())) {
		v.Shape = Flat
		v.Reason = fmt.Sprintf("does not rise so far; %d more samples for a verdict", v.NeedSamples)
		return v, true
	}
	v.Shape, v.Outcome = WarmingUp, Suspect
	v.Reason = fmt.Sprintf("too early: it rose by %s in the first %v, which start-up does too; need %d more samples (%v)",
		j.amount(s.Last()-s.First()), age.Round(time.Second), v.NeedSamples, (need - age).Round(time.Second))
	return v, true
}

// moving tells the shapes of a series that moves by more than the threshold apart.
func (j *Judge) moving(v Verdict, g growth, least float64) Verdict {
	change := FindChange(j.floors)
	up := change.After - change.Before
	stays := change.Explained > 0.7 && up >= least
	switch {
	case g.decelerating:
		v.Shape, v.Reason = WarmingUp, "rises ever slower: "+j.amount(g.rise)+" so far"
	case change.Kind == Step && stays:
		v.Shape, v.Since, v.Rise = Stepped, change.Begin, up
		v.Reason = fmt.Sprintf("went up by %s once and stayed", j.amount(up))
	case j.shrinks(g, least):
		v.Shape, v.Reason = Shrinking, "falls by "+j.amount(-g.trend.PerHour)+" an hour"
	case j.sawTooth(least):
		v.Shape, v.Reason = SawTooth, "rises and falls again and again without a rising floor"
	case j.bursting(least):
		v.Shape, v.Reason = Bursting, "left its level and came back"
	case change.Kind != NoChange && stays:
		v.Shape, v.Since = Stepped, change.Begin
		v.Reason = fmt.Sprintf("went up by %s, not steadily enough to call it growth", j.amount(up))
	default:
		v.Shape, v.Reason = Flat, "moves without a direction"
	}
	return v
}

// shrinks wants a significant fall of at least the threshold.
func (j *Judge) shrinks(g growth, least float64) bool {
	return g.trend.P <= j.thresholds.MaxP && g.trend.PerHour < 0 && -g.rise >= least
}

// sawTooth wants three or more falls of at least half the range between buckets, or most buckets wide enough to hold
// a whole tooth.
func (j *Judge) sawTooth(least float64) bool {
	low, high := j.extent()
	half := max((high-low)/2, least)
	falls, wide, top := 0, 0, math.Inf(-1)
	for _, b := range j.buckets {
		if b.Max-b.Min >= half {
			wide++
		}
		if top = max(top, b.Max); top-b.Last >= half {
			falls++
			top = b.Last
		}
	}
	return falls >= 3 || 3*wide >= 2*len(j.buckets) && high-low >= 0.1*math.Abs(low)
}

// bursting wants a peak that stands out of the median of the maxima and is over.
func (j *Judge) bursting(least float64) bool {
	j.scratch = j.scratch[:0]
	_, high := j.extent()
	for _, b := range j.buckets {
		j.scratch = append(j.scratch, b.Last)
	}
	middle := median(j.scratch)
	return high-middle >= least && j.buckets[len(j.buckets)-1].Last-middle < (high-middle)/2
}

// span prints a duration without zero minutes and seconds.
func span(d time.Duration) string {
	text := d.Round(time.Second).String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// amount prints a number with its unit.
func (j *Judge) amount(v float64) string {
	if j.thresholds.Unit != "bytes" {
		return trimFloat(v, j.thresholds.Unit)
	}
	for _, unit := range []struct {
		name string
		size float64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if math.Abs(v) >= unit.size {
			return trimFloat(v/unit.size, unit.name)
		}
	}
	return trimFloat(v, "bytes")
}

func trimFloat(v float64, unit string) string {
	text := fmt.Sprintf("%.1f", v)
	if math.Abs(v) >= 100 || v == math.Trunc(v) {
		text = fmt.Sprintf("%.0f", v)
	}
	if unit == "" {
		return text
	}
	return text + " " + unit
}
