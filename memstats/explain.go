package memstats

import (
	"math"
	"time"
)

// explanation is what the covariates say about a growth.
type explanation struct {
	explained bool
	by        string
	perUnit   float64
	exact     bool
	work      bool
}

// explain looks for a load that the growth follows, else for work that it grows with.
func (j *Judge) explain(s *Series, h horizon, g growth, covariates []Covariate) explanation {
	j.kept = append(j.kept[:0], j.floors...) // helpers reuse the scratch space
	floors := j.kept
	for _, c := range covariates {
		if c.Kind != Load || c.Series == nil {
			continue
		}
		// The last window is tried without, too: what a load holds is released a GC cycle after the load has gone.
		for drop := range 2 {
			if unit, ok := j.follows(s, c.Series, h, floors[:len(floors)-drop], g, drop); ok {
				return explanation{explained: true, by: c.Name, perUnit: unit}
			}
		}
	}
	for _, c := range covariates {
		if c.Kind != Work || c.Series == nil {
			continue
		}
		if unit, spread := j.unit(s, c.Series, h, 0); unit > 0 && spread < 0.25*g.rise {
			return explanation{by: c.Name, perUnit: unit, work: true, exact: spread < 0.01*g.rise}
		}
	}
	return explanation{}
}

// follows says whether a load explains a growth: what is left after taking the load's part away does not grow, and
// there is not more of it per unit of load than before.
func (j *Judge) follows(s, load *Series, h horizon, floors []Point, g growth, drop int) (unit float64, ok bool) {
	unit, long := j.longUnit(s, load, h, drop)
	if unit <= 0 {
		return 0, false
	}
	rest := j.residual(floors, load, h, unit)
	if len(rest) < h.need-drop || !j.goneFrom(rest, g) {
		return 0, false
	}
	return unit, long || !j.ratioRises(floors, load, h)
}

// goneFrom says whether a growth is gone from what is left of it.
func (j *Judge) goneFrom(rest []Point, g growth) bool {
	left := j.test(rest, nil)
	return !left.grows && !left.decelerating && left.trend.PerHour <= 0.5*g.trend.PerHour
}

// longUnit gives the part of the series per unit of load, from the longest horizon in which both have values and the
// load moved clearly more than in h (long is true then), else from h itself.
func (j *Judge) longUnit(s, load *Series, h horizon, drop int) (unit float64, long bool) {
	own := j.swing(load, h, drop)
	for i := len(j.horizons) - 1; i >= 0; i-- {
		l := j.horizons[i]
		if l.span <= h.span {
			break
		}
		if j.swing(load, l, 0) < 2*own {
			continue
		}
		if unit, _ = j.unit(s, load, l, 0); unit > 0 {
			return unit, true
		}
	}
	unit, _ = j.unit(s, load, h, drop)
	return unit, false
}

// swing is how far the floors of a load moved within a horizon, the last windows to drop left out.
func (j *Judge) swing(load *Series, h horizon, drop int) float64 {
	j.other = load.AppendFloors(j.other[:0], h.span, h.window)
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range j.other[:max(0, len(j.other)-drop)] {
		low, high = min(low, p.Value), max(high, p.Value)
	}
	return high - low
}

// unit is the median slope of the series over the load, from pairs of windows in which the load differs by a quarter
// of its range or more; spread is what is left around it. Zero when the load hardly moves.
func (j *Judge) unit(s, load *Series, h horizon, drop int) (unit, spread float64) {
	j.ys = s.AppendFloors(j.ys[:0], h.span, h.window)
	pairs := j.align(j.ys[:max(0, len(j.ys)-drop)], load, h)
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range pairs {
		low, high = min(low, p.x), max(high, p.x)
	}
	if len(pairs) < 6 || high-low <= 0.02*math.Abs(high) {
		return 0, 0
	}
	j.scratch = j.scratch[:0]
	for i := range pairs {
		for k := range i {
			if dx := pairs[i].x - pairs[k].x; math.Abs(dx) >= 0.25*(high-low) {
				j.scratch = append(j.scratch, (pairs[i].y-pairs[k].y)/dx)
			}
		}
	}
	unit = median(j.scratch)
	j.scratch = j.scratch[:0]
	for _, p := range pairs {
		j.scratch = append(j.scratch, p.y-unit*p.x)
	}
	middle := median(j.scratch)
	for i := range j.scratch {
		j.scratch[i] = math.Abs(j.scratch[i] - middle)
	}
	return unit, 1.4826 * median(j.scratch)
}

// pair is a load and a value at the same time.
type pair struct {
	x, y float64
	at   time.Time
}

// align joins floors of a series with those of a load that lie within half a window, in scratch space.
func (j *Judge) align(ys []Point, load *Series, h horizon) []pair {
	j.xs = load.AppendFloors(j.xs[:0], h.span, h.window)
	j.pairs = j.pairs[:0]
	k := 0
	for _, y := range ys {
		for k < len(j.xs) && j.xs[k].Time.Before(y.Time.Add(-h.window/2)) {
			k++
		}
		if k < len(j.xs) && !j.xs[k].Time.After(y.Time.Add(h.window/2)) {
			j.pairs = append(j.pairs, pair{x: j.xs[k].Value, y: y.Value, at: y.Time})
		}
	}
	return j.pairs
}

// residual is what floors have beside the load's part, in scratch space.
func (j *Judge) residual(floors []Point, load *Series, h horizon, unit float64) []Point {
	pairs := j.align(floors, load, h)
	j.rest = j.rest[:0]
	for _, p := range pairs {
		j.rest = append(j.rest, Point{Time: p.at, Value: p.y - unit*(p.x-pairs[0].x)})
	}
	return j.rest
}

// ratioRises says whether there is more of the series per unit of load at the end than at the start.
func (j *Judge) ratioRises(floors []Point, load *Series, h horizon) bool {
	pairs := j.align(floors, load, h)
	fifth := max(1, len(pairs)/5)
	ratio := func(part []pair) float64 {
		j.scratch = j.scratch[:0]
		for _, p := range part {
			j.scratch = append(j.scratch, p.y/max(p.x, 1))
		}
		return median(j.scratch)
	}
	return ratio(pairs[len(pairs)-fifth:]) > 1.1*ratio(pairs[:fifth])
}
