package memstats

import (
	"math"
	"time"
)

// Thresholds says how much must rise before it is called growth. The zero value is for counts, such as goroutines.
type Thresholds struct {
	// MinRise is the least rise of the floors over the horizon; default 10, negative for none.
	MinRise float64
	// MinRelative is the least rise as a part of the level before; default 0.02, negative for none. The larger of
	// both counts.
	MinRelative float64
	// MaxP is the largest probability of chance; default 1e-3. It is not the only condition, see [Judge].
	MaxP float64
	// WarmUp is left out at the start of a series; default 4 min, negative for none.
	WarmUp time.Duration
	// Scale makes all times shorter by a factor, for series of a scaled layout; default 1.
	Scale float64
	// Garbage says that the series holds garbage between GC cycles, as HeapAlloc does and HeapLiveBytes does not.
	// Then a rise counts only when it is more than what falls away now and then, and when five cycles passed in the
	// horizon (see [Cycles]).
	Garbage bool
	// Unit is the word for what is counted, used in reasons; default none, "bytes" prints KiB, MiB and GiB.
	Unit string
}

// ByteThresholds is for bytes of live heap: a rise of 6 MiB and 2 %.
func ByteThresholds() Thresholds { return Thresholds{MinRise: 6 << 20, Unit: "bytes"} }

func (t *Thresholds) setDefaults() {
	orDefault(&t.MinRise, 10)
	orDefault(&t.MinRelative, 0.02)
	orDefault(&t.MaxP, 1e-3)
	orDefault(&t.Scale, 1)
	orDefault(&t.WarmUp, 4*time.Minute)
	t.MinRise, t.MinRelative, t.WarmUp = max(t.MinRise, 0), max(t.MinRelative, 0), max(t.WarmUp, 0)
	t.Scale = max(t.Scale, 1)
	t.WarmUp = t.scaled(t.WarmUp)
}

// scaled makes a time shorter by the scale.
func (t *Thresholds) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / t.Scale)
}

func orDefault[T float64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// CovariateKind says what a covariate may do.
type CovariateKind uint8

// The kinds of covariates.
const (
	// Load is a gauge that is allowed to drive a series: live objects in the caches, connected clients, queue depth.
	// Growth that follows it is explained; growth per unit of it is not.
	Load CovariateKind = iota
	// Work is a counter of work done, such as reconciles. It never explains growth: what follows it leaks with each
	// unit of work, and the verdict says how much.
	Work
	// Cycles is the counter of GC cycles, for series with garbage. It explains nothing.
	Cycles
)

// Covariate is a number that may drive another.
type Covariate struct {
	Name   string
	Kind   CovariateKind
	Series *Series
}

// horizon is a stretch of time, cut into windows whose floors are compared.
type horizon struct {
	span, window time.Duration
	need         int // windows with values
}

// horizons gives the stretches, shortest first: the shorter one finds fast leaks soon, the longer ones slow leaks and
// staircases. A benign ramp must end within the shortest one or be explained by a covariate.
func (t *Thresholds) horizons() [6]horizon {
	all := [6]horizon{
		{24 * time.Minute, 2 * time.Minute, 11},
		{time.Hour, 6 * time.Minute, 9},
		{5 * time.Hour, 30 * time.Minute, 9},
		{20 * time.Hour, time.Hour, 16},
		{60 * time.Hour, 3 * time.Hour, 16},
		{6 * 24 * time.Hour, 6 * time.Hour, 19},
	}
	for i := range all {
		all[i].span, all[i].window = t.scaled(all[i].span), t.scaled(all[i].window)
	}
	return all
}

// Judge tells growth from load. It holds scratch space only: one Judge serves any number of series. It is not safe
// for concurrent use.
//
// A series is growing when at one of the horizons 24 minutes, 1, 5, 20 and 60 hours and 6 days all of this holds
// for the floors of its windows: the trend is significant (Mann–Kendall), the rise is large enough and stands out of
// the noise, the floors of five equal parts rise each over the one before, nothing came down by more than a quarter
// of the rise, the second half rises at least 0.7 times as fast as the first, and the newest part is higher than nine
// tenths of all that was before; and no covariate explains it.
type Judge struct {
	thresholds Thresholds
	horizons   [6]horizon
	fitter     fitter
	floors     []Point
	other      []Point
	history    []float64
	buckets    []Bucket
	scratch    []float64
	kept       []Point
	ys, xs     []Point
	rest       []Point
	pairs      []pair
}

// NewJudge makes a judge. It does not allocate per verdict once it has seen the largest series, except for the Reason
// of verdicts that are not flat.
func NewJudge(thresholds Thresholds) *Judge {
	thresholds.setDefaults()
	return &Judge{thresholds: thresholds, horizons: thresholds.horizons()}
}

// Judge gives the verdict on a series. Covariates should be of the same layout and fed at the same times.
func (j *Judge) Judge(s *Series, covariates ...Covariate) Verdict {
	v := Verdict{P: 1, Samples: s.Samples(), Level: s.Last()}
	if s.Samples() == 0 {
		v.Reason = "no values"
		return v
	}
	if low, high := s.extent(); high-low < j.thresholds.MinRise && s.age() >= j.horizons[1].span {
		v.Reason = "moves by less than the threshold" // most series, most of the time
		return v
	}
	if growing, ok := j.growthOf(s, covariates, &v); ok {
		return growing
	}
	if hidden, ok := j.hiddenGrowth(s, covariates); ok {
		return hidden
	}
	if kept, ok := j.retention(s, covariates); ok {
		return kept
	}
	return j.shape(s, v)
}

// growthOf looks for growth at each horizon: unexplained growth at any is the verdict, else explained growth at the
// longest. It lowers the probability in v.
func (j *Judge) growthOf(s *Series, covariates []Covariate, v *Verdict) (verdict Verdict, found bool) {
	for i, h := range j.horizons {
		if i == 0 && j.thresholds.Garbage {
			continue // a few teeth are no history
		}
		g, ok := j.growthAt(s, h)
		if !ok {
			continue
		}
		if !g.grows || j.tooth(s, h, g, covariates) {
			v.P = min(v.P, g.trend.P)
			continue
		}
		e := j.explain(s, h, g, covariates)
		if !e.explained {
			return j.growing(s, h, g, e), true
		}
		verdict, found = j.explainedVerdict(s, h, g, e), true
	}
	return verdict, found
}

// tooth says whether a rise may be no more than the flank of one tooth of the GC: fewer than five cycles passed, or,
// when nobody counts them and the series has garbage, as much fell away at least twice in the ten horizons before.
func (j *Judge) tooth(s *Series, h horizon, g growth, covariates []Covariate) bool {
	for _, c := range covariates {
		if c.Kind == Cycles && c.Series != nil {
			j.buckets = c.Series.AppendBuckets(j.buckets[:0], h.span)
			return len(j.buckets) == 0 || j.buckets[len(j.buckets)-1].Last-j.buckets[0].Min < 5
		}
	}
	if !j.thresholds.Garbage {
		return false
	}
	j.other = s.AppendFloors(j.other[:0], 10*h.span, h.window)
	falls, top := 0, math.Inf(-1)
	for _, p := range j.other {
		if top = max(top, p.Value); top-p.Value >= 0.5*g.rise {
			falls++
			top = p.Value
		}
	}
	return falls >= 2
}

// growth is the result of the test for growth on one run of floors.
type growth struct {
	grows        bool
	decelerating bool
	trend        Trend
	rise         float64
	first, last  float64 // floors of the first and the last fifth
	begin        time.Time
}

// growthAt tests a horizon; ok is false when it has too few windows with values.
func (j *Judge) growthAt(s *Series, h horizon) (growth, bool) {
	j.floors = j.usable(s, j.floors[:0], h)
	if len(j.floors) < h.need {
		return growth{}, false
	}
	j.history = s.appendCeilings(j.history[:0], h.window, j.floors[0].Time)
	g := j.test(j.floors, j.history)
	if g.grows && j.slowingDown(s, h, g) {
		g.grows, g.decelerating = false, true
	}
	return g, true
}

// usable gives the floors of a horizon without the warm-up of the series.
func (j *Judge) usable(s *Series, dst []Point, h horizon) []Point {
	dst = s.AppendFloors(dst, h.span, h.window)
	cut := 0
	begin := s.Start().Add(j.thresholds.WarmUp)
	for cut < len(dst) && dst[cut].Time.Before(begin) {
		cut++
	}
	return append(dst[:0], dst[cut:]...)
}

// slowingDown says whether the stretch before a horizon rose at least twice as much: then this is the tail of a
// warm-up.
func (j *Judge) slowingDown(s *Series, h horizon, g growth) bool {
	level, _ := s.level(2*h.span, 0)
	j.other = s.AppendFloors(j.other[:0], 2*h.span, max(h.window, level.Step))
	n := 0
	for n < len(j.other) && j.other[n].Time.Before(j.floors[0].Time) {
		n++
	}
	return n >= 2 && j.floors[0].Value-j.other[0].Value > 2*g.rise
}

// test holds the conditions for growth of one run of floors.
func (j *Judge) test(floors []Point, history []float64) growth {
	g := growth{trend: j.fitter.screen(floors), begin: floors[0].Time}
	var parts [5]float64
	fifths(floors, &parts)
	g.first, g.last = parts[0], parts[4]
	if g.trend.S <= 0 || g.trend.P > j.thresholds.MaxP {
		return g
	}
	j.fitter.slope(&g.trend)
	g.rise = g.trend.PerHour * floors[len(floors)-1].Time.Sub(floors[0].Time).Hours()
	least := max(j.thresholds.MinRise, j.thresholds.MinRelative*math.Abs(g.first))
	if g.rise < least || g.last-g.first < 0.6*least {
		return g
	}
	n := len(floors)
	if !risesThroughout(parts, n) || !risesAtEnds(floors) || fall(floors) > 0.25*g.rise+1e-9 || g.rise < 4*j.noise(floors, g.trend) {
		return g
	}
	early, late := (parts[2]-parts[0])/fifthsApart(0, 2, n), (parts[4]-parts[2])/fifthsApart(2, 4, n)
	if late < 0.7*early {
		g.decelerating = true
		return g
	}
	g.grows = len(history) < 4 || g.last >= usualHigh(history)+0.5*least
	return g
}

// fifths gives the floor of each of five equal parts.
func fifths(floors []Point, parts *[5]float64) {
	for i := range parts {
		low := math.Inf(1)
		for _, p := range floors[i*len(floors)/5 : (i+1)*len(floors)/5] {
			low = min(low, p.Value)
		}
		parts[i] = low
	}
}

// fifthsApart is the number of windows from the start of one fifth to that of another, of n windows.
func fifthsApart(from, to, n int) float64 { return float64(to*n/5 - from*n/5) }

// risesThroughout wants every part higher than the one before by nearly half of the average: one or two steps with
// flat stretches are no growth, many are.
func risesThroughout(parts [5]float64, n int) bool {
	average := (parts[4] - parts[0]) / fifthsApart(0, 4, n)
	for i := 1; i < len(parts); i++ {
		if parts[i]-parts[i-1] < 0.45*average*fifthsApart(i-1, i, n) || parts[i] <= parts[i-1] {
			return false
		}
	}
	return true
}

// risesAtEnds wants the first and the last sixth to rise by more than half of the average: a ramp that is shorter
// than the horizon is flat at one end.
func risesAtEnds(floors []Point) bool {
	n := len(floors)
	k := max(2, n/6)
	part := 0.5
	if k == 2 {
		part = 0.7 // one step in two windows is not enough
	}
	least := part * (floors[n-1].Value - floors[0].Value) / float64(n-1) * float64(k)
	return floors[k].Value-floors[0].Value >= least && floors[n-1].Value-floors[n-1-k].Value >= least
}

// fall is the largest fall from any floor to a later one.
func fall(floors []Point) (largest float64) {
	high := math.Inf(-1)
	for _, p := range floors {
		high = max(high, p.Value)
		largest = max(largest, high-p.Value)
	}
	return largest
}

// noise is the spread of the floors around their trend: the median distance, as a standard deviation.
func (j *Judge) noise(floors []Point, t Trend) float64 {
	j.scratch = j.scratch[:0]
	newest := floors[len(floors)-1].Time
	for _, p := range floors {
		fitted := t.At + t.PerHour*p.Time.Sub(newest).Hours()
		j.scratch = append(j.scratch, math.Abs(p.Value-fitted))
	}
	return 1.4826 * median(j.scratch)
}

// usualHigh is a level that history hardly ever went above: its ninth decile, and as much again as that is above the
// median, but at most its highest value, which a long leak passes all the time. It sorts history.
func usualHigh(history []float64) float64 {
	middle := median(history)
	high := history[(len(history)-1)*9/10]
	return min(high+(high-middle), history[len(history)-1])
}
