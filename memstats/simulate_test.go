package memstats_test

import (
	"math"
	"math/rand/v2"
	"time"
)

// tick is the sampling interval of the simulated operators.
const tick = 10 * time.Second

// reading is what an operator's guard sees at one tick.
type reading struct {
	goroutines float64
	live       float64 // what the heap really holds, in bytes
	objects    float64 // objects in the informers' stores
	load       float64 // reconciles a second, connected clients or queue depth: what the metrics endpoint has
	restart    bool
}

// loadShape is one way in which a healthy operator's numbers move. Its make gives the reading at a time since the
// start of the recording; the random source is its own.
type loadShape struct {
	name string
	make func(r *rand.Rand) func(at time.Duration) reading
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// steady gives a quiet operator to build on: 80 goroutines, a heap of 40 to 200 MiB, 200 objects, one reconcile a
// second.
func steady(r *rand.Rand) reading {
	return reading{goroutines: 60 + math.Floor(r.Float64()*60), live: (40 + 160*r.Float64()) * mib, objects: 200, load: 1}
}

// poisson draws a number of events; for large means from the normal distribution.
func poisson(r *rand.Rand, mean float64) float64 {
	if mean > 50 {
		return math.Max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64()))
	}
	limit, p, n := math.Exp(-mean), r.Float64(), 0.0
	for p > limit {
		p *= r.Float64()
		n++
	}
	return n
}

// drift is noise that remembers: an Ornstein–Uhlenbeck process with deviation one.
type drift struct{ v float64 }

func (d *drift) next(r *rand.Rand, tau time.Duration) float64 {
	keep := math.Exp(-float64(tick) / float64(tau))
	d.v = d.v*keep + math.Sqrt(1-keep*keep)*r.NormFloat64()
	return d.v
}

// between draws a duration evenly.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Float64()*float64(high-low))
}

// base adds small noise to a changed steady reading.
func base(r *rand.Rand, f func(q *reading, at time.Duration)) func(time.Duration) reading {
	start := steady(r)
	return func(at time.Duration) reading {
		q := start
		q.goroutines += poisson(r, 2)
		q.live *= 1 + 0.004*r.NormFloat64()
		f(&q, at)
		return q
	}
}

// fraction is how far at is between two times, 0 to 1.
func fraction(at, from, to time.Duration) float64 {
	return min(1, max(0, float64(at-from)/float64(to-from)))
}

// dayWave is a working day: 0 at night, 1 in the afternoon.
func dayWave(at, shift time.Duration) float64 {
	return 0.5 - 0.5*math.Cos(2*math.Pi*float64(at+shift)/float64(24*time.Hour))
}

// loadShapes lists the shapes, more than thirty.
func loadShapes() []loadShape {
	var all []loadShape
	all = append(all, quietShapes()...)
	all = append(all, steppedShapes()...)
	all = append(all, drivenShapes()...)
	all = append(all, burstShapes()...)
	all = append(all, lifeShapes()...)
	return all
}

func quietShapes() []loadShape {
	return []loadShape{
		{"flat", func(r *rand.Rand) func(time.Duration) reading {
			q := steady(r)
			return func(time.Duration) reading { return q }
		}},
		{"small noise", func(r *rand.Rand) func(time.Duration) reading { return base(r, func(*reading, time.Duration) {}) }},
		{"requests in flight", func(r *rand.Rand) func(time.Duration) reading {
			return base(r, func(q *reading, _ time.Duration) {
				n := poisson(r, 40)
				q.goroutines += n
				q.live += n * 64 * kib
			})
		}},
		{"noise that remembers minutes", func(r *rand.Rand) func(time.Duration) reading {
			var d drift
			return base(r, func(q *reading, _ time.Duration) {
				v := d.next(r, 3*time.Minute)
				q.goroutines += max(0, 30+10*v)
				q.live += 3 * mib * v
			})
		}},
		{"noise that remembers an hour", func(r *rand.Rand) func(time.Duration) reading {
			var d drift
			return base(r, func(q *reading, _ time.Duration) {
				v := d.next(r, time.Hour)
				q.goroutines += math.Round(max(0, 8+2*v))
				q.live += 1.5 * mib * v
			})
		}},
		{"large garbage noise", func(r *rand.Rand) func(time.Duration) reading {
			return base(r, func(q *reading, _ time.Duration) { q.live *= 1 + 0.03*math.Abs(r.NormFloat64()) })
		}},
		{"worker pool, idle and busy", func(r *rand.Rand) func(time.Duration) reading {
			return base(r, func(q *reading, _ time.Duration) { q.goroutines += 64 })
		}},
	}
}

func steppedShapes() []loadShape {
	ramp := func(name string, low, high time.Duration, goroutines, heap float64) loadShape {
		return loadShape{name, func(r *rand.Rand) func(time.Duration) reading {
			begin, length := between(r, time.Hour, 30*time.Hour), between(r, low, high)
			return base(r, func(q *reading, at time.Duration) {
				f := fraction(at, begin, begin+length)
				q.goroutines += math.Floor(goroutines * f)
				q.live += heap * f
			})
		}}
	}
	warm := func(name string, tau time.Duration) loadShape {
		return loadShape{name, func(r *rand.Rand) func(time.Duration) reading {
			size := 50 + 300*r.Float64()
			return base(r, func(q *reading, at time.Duration) {
				f := 1 - math.Exp(-float64(at)/float64(tau))
				q.goroutines += math.Floor(size * f)
				q.live += size * mib / 2 * f
			})
		}}
	}
	return []loadShape{
		ramp("step up", tick, 2*tick, 120, 80*mib),
		ramp("step down", tick, 2*tick, -40, -20*mib),
		ramp("ramp of 5 min, then plateau", 4*time.Minute, 6*time.Minute, 300, 100*mib),
		ramp("ramp of 15 min, then plateau", 13*time.Minute, 17*time.Minute, 300, 100*mib),
		ramp("slow drain of hours", 3*time.Hour, 9*time.Hour, -50, -30*mib),
		warm("cache warm-up, tau 3 min", 3*time.Minute),
		warm("cache warm-up, tau 8 min", 8*time.Minute),
		warm("cache warm-up, tau 12 min", 12*time.Minute),
		{"steps up and down", func(r *rand.Rand) func(time.Duration) reading {
			level, next := 0.0, time.Duration(0)
			return base(r, func(q *reading, at time.Duration) {
				if at >= next {
					level, next = math.Floor(r.Float64()*8), at+between(r, 20*time.Minute, 6*time.Hour)
				}
				q.goroutines += 25 * level
				q.live += 10 * mib * level
			})
		}},
		{"two steps, a day apart", func(r *rand.Rand) func(time.Duration) reading {
			one, two := between(r, 2*time.Hour, 20*time.Hour), between(r, 26*time.Hour, 44*time.Hour)
			return base(r, func(q *reading, at time.Duration) {
				q.goroutines += 30 * (fraction(at, one, one+tick) + fraction(at, two, two+tick))
				q.live += 20 * mib * (fraction(at, one, one+tick) + fraction(at, two, two+tick))
			})
		}},
		{"pool grown lazily in 10 min", func(r *rand.Rand) func(time.Duration) reading {
			begin := between(r, 0, 20*time.Hour)
			return base(r, func(q *reading, at time.Duration) {
				q.goroutines += math.Floor(100 * math.Sqrt(fraction(at, begin, begin+10*time.Minute)))
			})
		}},
	}
}
