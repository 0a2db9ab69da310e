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
	floors := append([]Point(nil), j.floors...) // helpers reuse the scratch space
	for _, c := range covariates {
		if c.Kind == Load && c.Series != nil && j.follows(s, c.Series, h, floors, g) {
			unit, _ := j.unit(s, c.Series, h)
			return explanation{explained: true, by: c.Name, perUnit: unit}
		}
	}
	for _, c := range covariates {
		if c.Kind != Work || c.Series == nil {
			continue
		}
		if unit, spread := j.unit(s, c.Series, h); unit > 0 && spread < 0.25*g.rise {
			return explanation{by: c.Name, perUnit: unit, work: true, exact: spread < 0.01*g.rise}
		}
	}
	return explanation{}
}

// follows says whether a load explains a growth: what is left after taking the load's part away does not grow, and there
// is not more of it per unit of load than before.
func (j *Judge) follows(s, load *Series, h horizon, floors []Point, g growth) bool {
	unit, long := j.longUnit(s, load, h)
	if unit <= 0 {
		return false
	}
	rest := j.residual(floors, load, h, unit)
	if len(rest) < h.need {
		return false
	}
	// The last window is tried without, too: what a load holds is released a GC cycle after the load has gone.
	if !j.goneFrom(rest, g) && !j.goneFrom(rest[:len(rest)-1], g) {
		return false
	}
	return long || !j.ratioRises(floors, load, h)
}

// goneFrom says whether a growth is gone from what is left of it.
func (j *Judge) goneFrom(rest []Point, g growth) bool {
	left := j.test(rest, nil)
	return !left.grows && !left.decelerating && left.trend.PerHour <= 0.5*g.trend.PerHour
}

// longUnit gives the part of the series per unit of load, from the longest horizon in which both have values and the
// load moved clearly more than in h (long is true then), else from h itself.
func (j *Judge) longUnit(s, load *Series, h horizon) (unit float64, long bool) {
	own := j.swing(load, h)
	for i := len(j.horizons) - 1; i >= 0; i-- {
		l := j.horizons[i]
		if l.span <= h.span {
			break
		}
		if j.swing(load, l) < 2*own {
			continue
		}
		if unit, _ := j.unit(s, load, l); unit > 0 {
			return unit, true
		}
	}
	unit, _ = j.unit(s, load, h)
	return unit, false
}

// swing is how far the floors of a load moved within a horizon.
func (j *Judge) swing(load *Series, h horizon) float64 {
	j.other = load.AppendFloors(j.other[:0], h.span, h.window)
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range j.other {
		low, high = min(low, p.Value), max(high, p.Value)
	}
	return high - low
}

// unit is the median slope of the series over the load, from pairs of windows in which the load differs by a quarter of its range or
// more; spread is what is left around it. Zero when the load hardly moves.
func (j *Judge) unit(s, load *Series, h horizon) (unit, spread float64) {
	ys := s.AppendFloors(nil, h.span, h.window)
	pairs := align(ys, load, h)
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

// align joins floors of a series with those of a load that lie within half a window.
func align(ys []Point, load *Series, h horizon) []pair {
	xs := load.AppendFloors(nil, h.span, h.window)
	pairs := make([]pair, 0, len(ys))
	k := 0
	for _, y := range ys {
		for k < len(xs) && xs[k].Time.Before(y.Time.Add(-h.window/2)) {
			k++
		}
		if k < len(xs) && !xs[k].Time.After(y.Time.Add(h.window/2)) {
			pairs = append(pairs, pair{x: xs[k].Value, y: y.Value, at: y.Time})
		}
	}
	return pairs
}

// residual is what floors have beside the load's part.
func (j *Judge) residual(floors []Point, load *Series, h horizon, unit float64) []Point {
	pairs := align(floors, load, h)
	rest := make([]Point, 0, len(pairs))
	for _, p := range pairs {
		rest = append(rest, Point{Time: p.at, Value: p.y - unit*(p.x-pairs[0].x)})
	}
	return rest
}

// ratioRises says whether there is more of the series per unit of load at the end than at the start.
func (j *Judge) ratioRises(floors []Point, load *Series, h horizon) bool {
	pairs := align(floors, load, h)
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
