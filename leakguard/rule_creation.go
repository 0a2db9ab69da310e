package leakguard

import (
	"fmt"
	"time"

	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// createdRate is what [probes.Process] calls the number of goroutines that are created in a minute.
const createdRate = "goroutines created a minute"

// When the rate of goroutines created climbs. It is a number full of noise, since goroutines come in bursts, and more load starts
// more of them: what climbs is listed and never alarms.
const (
	creationMeans    = 24   // at each resolution
	creationLeast    = 20   // means for a verdict
	creationRise     = 60.0 // a minute, one a second: less is no chain of timers worth a line
	creationRelative = 0.25 // of what there was
	creationChance   = 1e-4
	creationEven     = 0.4 // of its part of the rise is what each quarter must rise by at least: steps and ramps that end do not
)

// creation follows how many goroutines are created a minute. It is the only number that shows what is started again and again and
// ends at once.
type creation struct {
	timing  timing
	reading probes.Reading
	first   time.Time // reading
	last    time.Time
	levels  [3]creationLevel

	climbs   bool
	from, to float64 // a minute, when it was last seen to climb
	since    time.Time
	perHour  float64
	chance   float64
}

// creationLevel is the last means over one span of time.
type creationLevel struct {
	span  time.Duration
	means []creationMean // oldest first
	open  float64        // goroutines created in the span under way
	begin time.Time
	done  uint64 // reconciles at the begin
}

// creationMean is a mean of goroutines created and reconciles begun a minute, and the live objects at its end.
type creationMean struct {
	at                     time.Time
	created, work, objects float64
}

func newCreation(t timing) *creation {
	c := &creation{timing: t}
	for i, minutes := range []float64{1, 6, 60} {
		c.levels[i].span = time.Duration(minutes * float64(t.creation))
	}
	return c
}

// observe takes in a reading of the rate since the one before.
func (c *creation) observe(r *probes.Reading, ev *Evidence) {
	c.reading = *r
	if c.first.IsZero() {
		c.first = ev.At
	}
	created := r.Count * ev.At.Sub(c.last).Minutes()
	c.last = ev.At
	for i := range c.levels {
		l := &c.levels[i]
		if ev.At.Sub(c.first) < c.timing.warmUp || l.begin.IsZero() {
			l.begin, l.done = ev.At, ev.Load.Reconciles
			continue
		}
		l.add(created, ev)
	}
}

// add takes in what was created in a tick.
func (l *creationLevel) add(created float64, ev *Evidence) {
	l.open += created
	span := ev.At.Sub(l.begin)
	if span < l.span {
		return
	}
	work := float64(ev.Load.Reconciles - min(l.done, ev.Load.Reconciles))
	mean := creationMean{at: ev.At, created: l.open / span.Minutes(), work: work / span.Minutes(), objects: float64(ev.liveObjects())}
	if len(l.means) == creationMeans {
		l.means = append(l.means[:0], l.means[1:]...)
	}
	l.means = append(l.means, mean)
	l.begin, l.done, l.open = ev.At, ev.Load.Reconciles, 0
}

// climb gives the trend of the means when they climb: by much, surely, all the time, and by more than each load does.
func (l *creationLevel) climb() (trend memstats.Trend, ok bool) {
	if len(l.means) < creationLeast {
		return trend, false
	}
	trend, ok = l.rises(func(m creationMean) float64 { return m.created }, creationRise)
	for _, load := range []func(creationMean) float64{
		func(m creationMean) float64 { return m.work },
		func(m creationMean) float64 { return m.objects },
	} {
		if ok && l.always(load) {
			_, ok = l.rises(func(m creationMean) float64 { return m.created / load(m) }, 0)
		}
	}
	return trend, ok
}

// always reports whether a load was there all the time.
func (l *creationLevel) always(load func(creationMean) float64) bool {
	for _, m := range l.means {
		if load(m) <= 0 {
			return false
		}
	}
	return true
}

// rises tests a number made of the means.
func (l *creationLevel) rises(of func(creationMean) float64, least float64) (memstats.Trend, bool) {
	points := make([]memstats.Point, len(l.means))
	var quarters [4]float64
	for i, m := range l.means {
		points[i] = memstats.Point{Time: m.at, Value: of(m)}
		quarters[i*4/len(points)] += points[i].Value
	}
	n := len(points)
	trend := memstats.FitTrend(points)
	rise := trend.PerHour * points[n-1].Time.Sub(points[0].Time).Hours()
	if trend.P > creationChance || rise < max(least, creationRelative*(trend.At-rise)) {
		return trend, false
	}
	for k := range quarters {
		quarters[k] /= float64(((k+1)*n+3)/4 - (k*n+3)/4)
		if k > 0 && quarters[k]-quarters[k-1] < creationEven*rise/4 {
			return trend, false
		}
	}
	return trend, true
}

// step lists a rate that has climbed, until it has come back half of the way.
func (c *creation) step(ev *Evidence, emit func(signal)) {
	now := &c.levels[0]
	if !c.last.Equal(ev.At) || len(now.means) == 0 {
		return
	}
	for i := range c.levels {
		if trend, ok := c.levels[i].climb(); ok {
			means := c.levels[i].means
			if !c.climbs {
				c.since = means[0].at
				c.from = trend.At - trend.PerHour*means[len(means)-1].at.Sub(c.since).Hours()
			}
			c.climbs, c.to, c.perHour, c.chance = true, trend.At, trend.PerHour, trend.P
		}
	}
	rate, work := now.latest()
	c.climbs = c.climbs && rate >= (c.from+c.to)/2
	if !c.climbs {
		return
	}
	s := signal{
		rule: ruleCounter, category: c.reading.Probe, tier: TierListed, level: levelListed, pattern: true,
		culprit: frame.Frame{Function: createdRate}, count: int64(rate), perHour: c.perHour, since: c.since, trap: c.reading.Trap,
		reason: fmt.Sprintf("%s: %.0f → %.0f in %s (it climbed by %.0f an hour, chance %.1g)", createdRate, max(0, c.from), rate,
			ev.At.Sub(c.since).Round(time.Second), c.perHour, c.chance),
		advice: "a time.AfterFunc that starts itself again is the usual cause, or a goroutine that starts the next one: let it end with what it " +
			"works for, by Stop or by a context; no stack names it, for each lives for a moment only",
	}
	if work > 0 {
		s.reason += fmt.Sprintf("; %.0f reconciles a minute do not explain it", work)
	}
	emit(s)
}

// latest gives the mean of the last quarter.
func (l *creationLevel) latest() (created, work float64) {
	last := l.means[max(0, len(l.means)-creationMeans/4):]
	for _, m := range last {
		created, work = created+m.created/float64(len(last)), work+m.work/float64(len(last))
	}
	return created, work
}
