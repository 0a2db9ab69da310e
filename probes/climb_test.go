package probes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leakguard/leakguard/probes"
)

// TestClimb follows numbers, one for each round.
func TestClimb(t *testing.T) {
	ramp := grow(1, probes.Climbing, 1)
	for _, tt := range []struct {
		name    string
		numbers []int
		want    int
	}{
		{"new", []int{5}, 0},
		{"flat", []int{5, 5, 5, 5, 5, 5}, 0},
		{"two steps", []int{1, 5, 5, 9, 9}, 2},
		{"up and down", []int{1, 2, 1, 2, 1, 2, 1, 2}, 0},
		{"a ramp", ramp, probes.Climbing},
		{"a ramp to below what it was", append([]int{99, 98}, ramp...), 0},
		{"a ramp to beyond what it was", append([]int{8, 1}, ramp...), 3},
		{"a ramp to below what it was two hours ago", slices.Concat([]int{99}, slices.Repeat([]int{1}, 719), ramp), 0},
		{"a ramp to below what it was four hours ago", slices.Concat([]int{99}, slices.Repeat([]int{1}, 1439), ramp), probes.Climbing},
		{"a fall after a ramp", append(slices.Clone(ramp), 2), 0},
		{"a rest", append(slices.Clone(ramp), slices.Repeat([]int{11}, 19)...), probes.Climbing},
		{"a longer rest", append(slices.Clone(ramp), slices.Repeat([]int{11}, 20)...), 0},
		{"a rise after it", append(append(slices.Clone(ramp), slices.Repeat([]int{11}, 20)...), 12), 1},
		{"one in thirty", grow(1, 12, 30), 11}, // it takes two to tell how slow it is
		{"one in thirty, and a rest", append(grow(1, 12, 30), slices.Repeat([]int{13}, 89)...), 11},
		{"one in thirty, and a longer rest", append(grow(1, 12, 30), slices.Repeat([]int{13}, 90)...), 0},
		{"one in 181", grow(1, 12, 181), 1},
		{"one in 180", grow(1, 12, 180), 11},
	} {
		var c probes.Climb
		var got int
		for _, n := range tt.numbers {
			got = c.Observe("key", n)
			c.Observe("other", 1)
			c.EndRound()
		}
		if got != tt.want {
			t.Errorf("%s: got %d rises, want %d", tt.name, got, tt.want)
		}
	}
}

// TestClimbShapes follows the shapes of leaks and of what is none.
func TestClimbShapes(t *testing.T) {
	wantShapes(t, func(*testing.T) func(n int) probes.Reading {
		var c probes.Climb
		return func(n int) probes.Reading {
			return probes.Reading{Count: float64(n), Climbing: c.Observe("key", n) >= probes.Climbing}
		}
	})
}

// TestClimbOfWhatComesAndGoes has a hundred things that live for a random time, five minutes or an hour in the mean: that their
// number rises ten times in a row happens each day, but hardly ever that it climbs.
func TestClimbOfWhatComesAndGoes(t *testing.T) {
	const interval, days, alive, tries = 10, 20, 100, 40
	for _, life := range []float64{300, 3600} {
		random := rand.New(rand.NewPCG(1, 1))
		changes := func(of int, chance float64) (n int) {
			for range of {
				if random.Float64() < chance {
					n++
				}
			}
			return n
		}
		var c probes.Climb
		climbs, before := 0, 0
		for n, read := alive, 0; read < days*8640; read++ {
			n += changes(tries, alive*interval/life/tries) - changes(n, interval/life)
			rises := c.Observe("sockets", n)
			if rises >= probes.Climbing && before < probes.Climbing {
				climbs++
			}
			before = rises
		}
		if climbs > 1 {
			t.Errorf("what lives for %v s has climbed %d times in %d days, want once at most", life, climbs, days)
		}
	}
}

func TestClimbForgets(t *testing.T) {
	var c probes.Climb
	for round := range 10 {
		for i := range 1000 {
			c.Observe(fmt.Sprint(round, i), 1)
		}
		c.EndRound()
	}
	c.EndRound()
	for n := range 3 {
		if got := c.Observe("late", n+1); got != n {
			t.Errorf("after 10,000 keys that went, number %d of a new one: got %d rises, want %d", n, got, n)
		}
	}
}
