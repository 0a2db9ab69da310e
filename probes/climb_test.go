package probes_test

import (
	"fmt"
	"testing"

	"github.com/leakguard/leakguard/probes"
)

// TestClimb follows numbers, one for each round.
func TestClimb(t *testing.T) {
	for _, tt := range []struct {
		name    string
		numbers []int
		want    bool
	}{
		{"flat", []int{5, 5, 5, 5, 5, 5}, false},
		{"two steps", []int{1, 5, 5, 9, 9}, true}, // the first number is a rise as well
		{"one step", []int{1, 5, 5, 5}, false},
		{"up and down", []int{1, 2, 1, 2, 1, 2, 1, 2}, false},
		{"a ramp", []int{1, 2, 3}, true},
		{"a ramp after a fall", []int{9, 1, 2, 3}, true},
		{"a fall after a ramp", []int{1, 2, 3, 2}, false},
		{"down to nothing", []int{1, 2, 3, 0}, false},
	} {
		var c probes.Climb
		var got bool
		for _, n := range tt.numbers {
			got = c.Observe("key", n) >= probes.Climbing
			c.Observe("other", 1)
			c.EndRound()
		}
		if got != tt.want {
			t.Errorf("%s: %v is a climb: %v, want %v", tt.name, tt.numbers, got, tt.want)
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
		if got, want := c.Observe("late", n+1) >= probes.Climbing, n == 2; got != want {
			t.Errorf("after 10,000 keys that went, number %d of a new one is a climb: %v, want %v", n, got, want)
		}
	}
}
