package memstats_test

import (
	"math"
	"math/rand/v2"
	"time"
)

// drivenShapes move with something that the guard sees too.
func drivenShapes() []loadShape {
	wave := func(name string, amplitude float64, f func(at time.Duration) float64) loadShape {
		return loadShape{name, func(r *rand.Rand) func(time.Duration) reading {
			shift := between(r, 0, 24*time.Hour)
			return base(r, func(q *reading, at time.Duration) {
				w := f(at) * dayWave(at, shift)
				q.load = 5 + 100*w + r.NormFloat64()
				q.goroutines += poisson(r, amplitude*w)
				q.live += amplitude * w * 256 * kib
			})
		}}
	}
	return []loadShape{
		wave("daily wave", 150, func(time.Duration) float64 { return 1 }),
		wave("daily wave, small", 30, func(time.Duration) float64 { return 1 }),
		wave("daily wave with weekends", 150, func(at time.Duration) float64 {
			if int(at.Hours()/24)%7 >= 5 {
				return 0.2
			}
			return 1
		}),
		{"a goroutine per CR, CRs grow", func(r *rand.Rand) func(time.Duration) reading {
			rate := 1 + 40*r.Float64() // an hour
			return base(r, func(q *reading, at time.Duration) {
				n := math.Floor(rate * at.Hours())
				q.objects += n
				q.goroutines += n + 200
				q.live += (n + 200) * 40 * kib
			})
		}},
		{"CRs grow fast, then no more", func(r *rand.Rand) func(time.Duration) reading {
			begin := between(r, time.Hour, 20*time.Hour)
			length := between(r, time.Hour, 8*time.Hour)
			return base(r, func(q *reading, at time.Duration) {
				n := math.Floor(3000 * fraction(at, begin, begin+length))
				q.objects += n
				q.goroutines += n + 200
				q.live += (n + 200) * 30 * kib
			})
		}},
		{"CRs come and go", func(r *rand.Rand) func(time.Duration) reading {
			n := 300.0
			return base(r, func(q *reading, _ time.Duration) {
				if r.IntN(30) == 0 {
					n = max(0, n+math.Round(6*r.NormFloat64()))
				}
				q.objects = n
				q.goroutines += 2 * n
				q.live += n * 50 * kib
			})
		}},
		{"cache of objects, heap only", func(r *rand.Rand) func(time.Duration) reading {
			rate := 30 + 100*r.Float64()
			return base(r, func(q *reading, at time.Duration) {
				day := math.Mod(at.Hours(), 48)
				q.objects += math.Floor(rate * day) // deleted all at once every two days
				q.live += q.objects * 33 * kib
			})
		}},
		{"connected clients", func(r *rand.Rand) func(time.Duration) reading {
			clients := 50.0
			return base(r, func(q *reading, at time.Duration) {
				if r.IntN(20) == 0 {
					clients = max(5, clients+math.Round(4*r.NormFloat64()))
				}
				q.load = clients
				q.goroutines += 3 * clients
				q.live += clients * 100 * kib
			})
		}},
		{"backlog while the API server is away", func(r *rand.Rand) func(time.Duration) reading {
			begin, depth := between(r, time.Hour, 12*time.Hour), 0.0
			return base(r, func(q *reading, at time.Duration) {
				switch {
				case at > begin && at < begin+45*time.Minute:
					depth += 8
				case at >= begin+45*time.Minute:
					depth = max(0, depth-20)
				}
				if at > begin+8*time.Hour {
					begin = at + between(r, 4*time.Hour, 20*time.Hour)
				}
				q.load = 1 + depth
				q.goroutines += math.Floor(depth / 10)
				q.live += depth * 20 * kib
			})
		}},
		{"nightly batch of two hours", func(r *rand.Rand) func(time.Duration) reading {
			begin := between(r, time.Hour, 20*time.Hour)
			return base(r, func(q *reading, at time.Duration) {
				inDay := (at - begin + 240*time.Hour) % (24 * time.Hour)
				if inDay < 2*time.Hour {
					q.load = 40 + r.NormFloat64()
					q.goroutines += 100
					q.live += 60 * mib * fraction(inDay, 0, 12*time.Minute)
				}
			})
		}},
	}
}

func burstShapes() []loadShape {
	burst := func(name string, everyLow, everyHigh, lengthLow, lengthHigh time.Duration, goroutines, heap float64) loadShape {
		return loadShape{name, func(r *rand.Rand) func(time.Duration) reading {
			begin := between(r, everyLow, everyHigh)
			end := begin + between(r, lengthLow, lengthHigh)
			return base(r, func(q *reading, at time.Duration) {
				if at >= end {
					begin = at + between(r, everyLow, everyHigh)
					end = begin + between(r, lengthLow, lengthHigh)
				}
				if at >= begin {
					q.goroutines += math.Floor(goroutines * (0.5 + r.Float64()))
					q.live += heap * (0.8 + 0.2*r.Float64())
				}
			})
		}}
	}
	return []loadShape{
		burst("burst of 5,000 for 30 s", 2*time.Hour, 9*time.Hour, 30*time.Second, 40*time.Second, 5000, 50*mib),
		burst("burst storms of a minute", 5*time.Minute, 30*time.Minute, 30*time.Second, 90*time.Second, 500, 20*mib),
		burst("bursts of ten minutes", time.Hour, 6*time.Hour, 8*time.Minute, 12*time.Minute, 300, 60*mib),
		burst("hourly cron of five minutes", 55*time.Minute, 56*time.Minute, 4*time.Minute, 6*time.Minute, 60, 30*mib),
		burst("jobs that outlive their reconcile by minutes", 10*time.Minute, time.Hour, 3*time.Minute, 8*time.Minute, 40, 5*mib),
		burst("three minutes of back-pressure", 3*time.Hour, 12*time.Hour, 3*time.Minute, 4*time.Minute, 800, 100*mib),
	}
}

// lifeShapes have restarts, gaps and changes of role.
func lifeShapes() []loadShape {
	restarts := func(name string, low, high time.Duration) loadShape {
		return loadShape{name, func(r *rand.Rand) func(time.Duration) reading {
			born, next := time.Duration(0), between(r, low, high)
			return base(r, func(q *reading, at time.Duration) {
				if at >= next {
					born, next, q.restart = at, at+between(r, low, high), true
				}
				f := 1 - math.Exp(-float64(at-born)/float64(4*time.Minute))
				q.goroutines += math.Floor(100*f) - 40
				q.live *= 0.3 + 0.7*f
			})
		}}
	}
	return []loadShape{
		restarts("a restart every day or so", 15*time.Hour, 40*time.Hour),
		restarts("a crash loop", 3*time.Minute, 50*time.Minute),
		{"a standby that becomes leader", func(r *rand.Rand) func(time.Duration) reading {
			begin := between(r, time.Hour, 40*time.Hour)
			return base(r, func(q *reading, at time.Duration) {
				f := 1 - math.Exp(-max(0, float64(at-begin))/float64(2*time.Minute))
				q.goroutines += math.Floor(150 * f)
				q.live += 90 * mib * f
			})
		}},
		{"a slow shutdown of a tenant", func(r *rand.Rand) func(time.Duration) reading {
			begin := between(r, 10*time.Hour, 30*time.Hour)
			return base(r, func(q *reading, at time.Duration) {
				f := 1 - fraction(at, begin, begin+3*time.Hour)
				q.goroutines += math.Floor(200 * f)
				q.live += 60 * mib * f
			})
		}},
		{"map tables that do not shrink", func(r *rand.Rand) func(time.Duration) reading {
			shift, top := between(r, 0, 24*time.Hour), 0.0
			return base(r, func(q *reading, at time.Duration) {
				n := 20000 * dayWave(at, shift)
				top = max(top, n)
				q.objects += n
				q.live += n*600 + top*44
			})
		}},
	}
}
