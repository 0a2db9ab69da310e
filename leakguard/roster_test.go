package leakguard_test

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// TestAlarmThatIsTakenBack ramps up goroutines that live longer than it takes to call them a leak.
func TestAlarmThatIsTakenBack(t *testing.T) {
	t.Parallel()
	w, load, fired := newWorld(t), newTurnover(1, 10*time.Minute, 100), false
	w.run(time.Hour, func(int) {
		load.step(w)
		fired = fired || len(w.in(leakguard.StateFiring)) > 0
	})
	if !fired {
		t.Error("never fired: the test shows nothing")
	}
	if got := w.in(leakguard.StateResolved); len(got) != 1 {
		t.Errorf("got %v, want one resolved finding", w.last)
	}
}

// TestRootOfSeveralPlaces has one controller leak what others use as they should.
func TestRootOfSeveralPlaces(t *testing.T) {
	t.Parallel()
	w, load := newWorld(t), newTurnover(1, 90*time.Second, 60)
	for range 60 { // all along, so that they are no growth
		load.ends[w.start(load.controller, probes.SpanID{}, load.function)] = w.now.Add(time.Duration(load.random.Int64N(int64(load.life))))
	}
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

// TestLeakBesideThousands has more goroutines at one place than are followed.
func TestLeakBesideThousands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3000 {
		w.start("", probes.SpanID{}, "leak")
	}
	w.run(10*time.Minute, func(s int) {
		if s%10 == 0 {
			w.start("", probes.SpanID{}, "leak")
		}
	})
	w.wantFiring("growth")
}
