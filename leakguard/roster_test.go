package leakguard_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

// turnover is goroutines of one place that all live for the same time and begin at random, as requests do.
type turnover struct {
	controller, function string
	life                 time.Duration
	alive                float64 // how many there are at once, in the mean
	random               *rand.Rand
	ends                 map[*fake]time.Time
}

// step lets a second pass.
func (l *turnover) step(w *world) {
	w.end(func(g *fake) bool {
		end, ours := l.ends[g]
		if ours = ours && !w.now.Before(end); ours {
			delete(l.ends, g)
		}
		return ours
	})
	for range l.births() {
		l.ends[w.start(l.controller, probes.SpanID{}, l.function)] = w.now.Add(l.life)
	}
}

// fill starts goroutines that have lived for a while.
func (l *turnover) fill(w *world, n int) {
	for range n {
		l.ends[w.start(l.controller, probes.SpanID{}, l.function)] = w.now.Add(time.Duration(l.random.Int64N(int64(l.life))))
	}
}

// births is a random number after Poisson.
func (l *turnover) births() (n int) {
	limit := math.Exp(-l.alive / l.life.Seconds())
	for p := l.random.Float64(); p > limit; n++ {
		p *= l.random.Float64()
	}
	return n
}

func newTurnover(seed uint64, life time.Duration, alive float64) *turnover {
	return &turnover{
		controller: "handlers of App", function: "serve", life: life, alive: alive,
		random: rand.New(rand.NewPCG(seed, seed)), ends: map[*fake]time.Time{},
	}
}

// TestLoadThatTurnsOver starts from nothing, so that at first the goroutines are ever more, and then as many as they are by
// chance. What does not outlive the minute of a survivor is not even pending.
func TestLoadThatTurnsOver(t *testing.T) {
	t.Parallel()
	for _, life := range []time.Duration{2 * time.Second, 15 * time.Second, time.Minute, 150 * time.Second} {
		for _, alive := range []float64{7, 30, 100} {
			t.Run(fmt.Sprint(alive, " for ", life), func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(20) {
					w, load := newWorld(t), newTurnover(seed, life, alive)
					w.run(time.Hour, func(s int) {
						load.step(w)
						bad := []leakguard.State{leakguard.StateFiring, leakguard.StatePending}
						if life > time.Minute {
							bad = bad[:1]
						}
						if got := w.in(bad...); len(got) > 0 {
							t.Fatalf("seed %d, after %d s: %s: %s", seed, s, got[0].String(), got[0].Reason)
						}
					})
				}
			})
		}
	}
}

// TestSteadyLoad has as many goroutines all along as there are by chance, each alive for five minutes.
func TestSteadyLoad(t *testing.T) {
	t.Parallel()
	pending := 0
	for seed := range uint64(40) {
		w, load, said := newWorld(t), newTurnover(seed, 5*time.Minute, 100), false
		load.fill(w, 100)
		w.run(time.Hour, func(s int) {
			load.step(w)
			if got := w.in(leakguard.StateFiring); len(got) > 0 {
				t.Fatalf("seed %d, after %d s: %s: %s", seed, s, got[0].String(), got[0].Reason)
			}
			said = said || len(w.in(leakguard.StatePending)) > 0
		})
		if said {
			pending++
		}
	}
	if pending > 0 {
		t.Errorf("%d of 40 loads were pending, want none", pending)
	}
}

// TestLeakInLoadThatTurnsOver is its counterpart: the same place leaks as well.
func TestLeakInLoadThatTurnsOver(t *testing.T) {
	t.Parallel()
	for _, alive := range []float64{7, 30} {
		t.Run(fmt.Sprint(alive), func(t *testing.T) {
			t.Parallel()
			w, load := newWorld(t), newTurnover(1, 15*time.Second, alive)
			w.run(time.Hour, func(s int) {
				load.step(w)
				if s%10 == 0 {
					w.start(load.controller, probes.SpanID{}, load.function)
				}
			})
			w.wantFiring("growth")
		})
	}
}

// TestBurstsSeenLaterAndLater starts goroutines in each interval that are gone before the next sample. It falls a little later
// into the burst each time, so that their number climbs as that of a leak.
func TestBurstsSeenLaterAndLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(2*time.Hour, func(s int) {
		if s%10 != 9 {
			return
		}
		w.end(func(*fake) bool { return true })
		for range 5 + s/60 {
			w.start("", probes.SpanID{}, "burst")
		}
	})
	w.wantSilence()
	if w.dumps < 2 || w.dumps > 30 {
		t.Errorf("got %d dumps, want a few, not one a minute", w.dumps)
	}
}

// TestControllersOneByOne starts controllers one after the other, as their caches take long or their kinds come late: each has a
// goroutine that lives and started one worker. The workers are as many as the controllers, and not even pending. Begun by one
// goroutine they are a leak.
func TestControllersOneByOne(t *testing.T) {
	t.Parallel()
	for _, every := range []int{15, 25, 120} {
		for _, leaks := range []bool{false, true} {
			t.Run(fmt.Sprint(every, leaks), func(t *testing.T) {
				t.Parallel()
				w, n := newWorld(t), 0
				main := w.start("", probes.SpanID{}, "main")
				w.run(time.Hour+time.Duration(25*every)*time.Second, func(s int) {
					if s%every == 0 && n < 25 {
						n++
						creator := main
						if !leaks {
							creator = w.start("", probes.SpanID{}, "startController")
						}
						w.start("", probes.SpanID{}, "worker").creator = creator.id
					}
					if got := w.in(leakguard.StateFiring, leakguard.StatePending); !leaks && len(got) > 0 {
						t.Fatalf("after %d s: %s: %s", s, got[0].String(), got[0].Reason)
					}
				})
				if leaks {
					w.wantFiring("growth")
				}
			})
		}
	}
}

// TestFleetThatChanges has goroutines of which two begin and an old one ends, time and again: their number only rises.
func TestFleetThatChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 100 {
		w.start("", probes.SpanID{}, "session")
	}
	w.run(time.Hour, func(s int) {
		if s%30 != 9 {
			return
		}
		oldest := w.living[0]
		w.end(func(g *fake) bool { return g == oldest })
		w.start("", probes.SpanID{}, "session")
		w.start("", probes.SpanID{}, "session")
		if got := w.in(leakguard.StateFiring); len(got) > 0 {
			t.Fatalf("after %d s: %s: %s", s, got[0].String(), got[0].Reason)
		}
	})
}

// TestRampThatEnds starts ever more goroutines, each of which lives for five minutes: there are fifteen in the end.
func TestRampThatEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(time.Hour, func(s int) {
		w.end(func(g *fake) bool { return w.now.Sub(g.born) >= 5*time.Minute })
		if s%20 == 0 {
			w.start("", probes.SpanID{}, "session")
		}
		if got := w.in(leakguard.StateFiring); len(got) > 0 {
			t.Fatalf("after %d s: %s: %s", s, got[0].String(), got[0].Reason)
		}
	})
}

// TestAlarmThatIsTakenBack ramps up goroutines that live longer than it takes to call them a leak, with and without others that
// stay.
func TestAlarmThatIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 100} {
		t.Run(strconv.Itoa(others), func(t *testing.T) {
			t.Parallel()
			w, load := newWorld(t), newTurnover(1, 10*time.Minute, 100)
			for range others {
				w.start(load.controller, probes.SpanID{}, load.function)
			}
			said := map[leakguard.State]bool{}
			w.run(90*time.Minute, func(int) {
				load.step(w)
				for _, f := range w.last {
					said[f.State] = true
				}
			})
			if !said[leakguard.StateFiring] {
				t.Error("never fired: the test shows nothing")
			}
			if got := w.in(leakguard.StateFiring); !said[leakguard.StateResolved] || len(got) > 0 {
				t.Errorf("got %v and %v, want a finding that is resolved", got, said)
			}
		})
	}
}

// TestSlowLeakWithBacklogs leaks a goroutine every five minutes, while now and then requests wait that would explain as many.
func TestSlowLeakWithBacklogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(80*time.Minute, func(s int) {
		if s%300 == 0 {
			w.start("", probes.SpanID{}, "leak")
		}
		if w.load.QueueDepth = 0; s%900 >= 870 {
			w.load.QueueDepth = 50
		}
	})
	w.wantFiring("growth")
}

// TestRootOfSeveralPlaces has one controller leak what others use as they should.
func TestRootOfSeveralPlaces(t *testing.T) {
	t.Parallel()
	w, load := newWorld(t), newTurnover(1, 90*time.Second, 60)
	load.fill(w, 60) // all along, so that they are no growth
	w.run(15*time.Minute, func(s int) {
		load.step(w)
		if s%10 == 0 {
			w.start("leaky", probes.SpanID{}, load.function)
		}
	})
	if f := w.wantFiring("growth"); f.Controller != "leaky" {
		t.Errorf("got controller %q, want leaky", f.Controller)
	}
}

// TestLeakOfThousands has more goroutines at one place than are followed: those that were there before, or those that leak.
func TestLeakOfThousands(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ before, each int }{{3000, 1}, {0, 200}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for range tt.before {
				w.start("", probes.SpanID{}, "leak")
			}
			w.run(10*time.Minute, func(s int) {
				for range tt.each {
					if s%10 == 0 {
						w.start("", probes.SpanID{}, "leak")
					}
				}
			})
			w.wantFiring("growth")
		})
	}
}
