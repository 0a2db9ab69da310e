package leakguard_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

// TestPlateausOfCounts lets what a probe counts grow for a while and then stay for hours. It may be likely while it grows;
// in the end nothing may fire, and at no time may anything be proven.
func TestPlateausOfCounts(t *testing.T) {
	t.Parallel()
	const every = 10 * time.Second
	stays := func(at, after time.Duration) time.Duration { return min(at, after) }
	for _, tt := range []struct {
		name  string
		count func(at time.Duration) int
		total bool
		fires bool // it may or must, see leaks
		leaks bool // it must, and still does in the end
	}{
		{"a step that is worth a line", func(at time.Duration) int {
			if at < 20*time.Minute {
				return 5
			}
			return 200
		}, false, false, false},
		{"a warm-up", func(at time.Duration) int { return 5 + int(stays(at, 90*time.Second)/every) }, false, false, false},
		{"one an hour", func(at time.Duration) int { return 5 + int(stays(at, 10*time.Hour)/time.Hour) }, false, false, false},
		{"a fleet", func(at time.Duration) int { return 4 + int(stays(at, 3*time.Hour)/(5*time.Minute)) }, false, true, false},
		{"a quick fleet", func(at time.Duration) int { return 4 + int(stays(at, 20*time.Minute)/every) }, false, true, false},
		{"a quick fleet that is worth a line", func(at time.Duration) int { return 140 + int(stays(at, 20*time.Minute)/every) }, false, true, false},
		{"what happens at a steady rate", func(at time.Duration) int { return 4 + int(at/time.Minute) }, true, false, false},
		{"a slow leak", func(at time.Duration) int { return 4 + int(at/(5*time.Minute)) }, false, true, true},
		{"a leak", func(at time.Duration) int { return 4 + int(at/every) }, false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var climb probes.Climb
			start, fired := w.now, time.Duration(0)
			for at := time.Duration(0); at < 15*time.Hour; at += every {
				w.now = start.Add(at)
				n := tt.count(at)
				climbing := climb.Observe("", n) >= probes.Climbing && !tt.total
				w.readings = []probes.Reading{{Probe: "probe", Resource: "things", Count: float64(n), Covariate: -1, Climbing: climbing, Total: tt.total, Listed: n > 150}}
				w.tick()
				for _, f := range w.last {
					if f.Tier == leakguard.TierProven {
						t.Fatalf("after %v: %v is proven", at, f)
					}
					if f.State == leakguard.StateFiring && fired == 0 {
						fired = at
					}
				}
			}
			if fired > 0 && !tt.fires {
				t.Errorf("fired after %v: %v", fired, w.last)
			}
			if firing := len(w.in(leakguard.StateFiring)) > 0; firing != tt.leaks {
				t.Errorf("firing in the end: got %t, want %t: %v", firing, tt.leaks, w.last)
			}
		})
	}
}

// TestCountsThatComeAndGo counts a hundred things that each live for an hour in the mean. In ten days there are now and then many
// more of them for hours.
func TestCountsThatComeAndGo(t *testing.T) {
	t.Parallel()
	const alive, tries = 100, 50
	interval, life := 10*time.Second, time.Hour
	random := rand.New(rand.NewPCG(5, 5))
	changes := func(of int, chance float64) (n int) {
		for range of {
			if random.Float64() < chance {
				n++
			}
		}
		return n
	}
	w := newWorld(t)
	start, n := w.now, alive
	var climb probes.Climb
	for at := time.Duration(0); at < 10*24*time.Hour; at += interval {
		share := interval.Seconds() / life.Seconds()
		n += changes(tries, alive*share/tries) - changes(n, share)
		w.now = start.Add(at)
		w.readings = []probes.Reading{{
			Probe: "process", Resource: "open files: socket", Count: float64(n), Covariate: -1,
			Climbing: climb.Observe("socket", n) >= probes.Climbing,
		}}
		w.tick()
		if got := w.in(leakguard.StateFiring); len(got) > 0 {
			t.Fatalf("after %v: %s: %s", at, got[0].String(), got[0].Reason)
		}
	}
}
