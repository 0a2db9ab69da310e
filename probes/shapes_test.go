package probes_test

import (
	"slices"
	"testing"

	"github.com/leakguard/leakguard/probes"
)

// shape is how a number goes from read to read.
type shape struct {
	name    string
	numbers []int
	climbs  bool // it may be called climbing while it grows
	leak    bool // it is when all has been read; otherwise it is not
}

// grow gives numbers that rise by one each so many reads.
func grow(from, rises, every int) (numbers []int) {
	for i := range rises {
		numbers = append(numbers, slices.Repeat([]int{from + i}, every)...)
	}
	return append(numbers, from+rises)
}

// shapes are a leak, quick or slow, and what is none: a number that stays where it has arrived, whichever way.
func shapes() []shape {
	rest := func(numbers []int) []int { return append(numbers, slices.Repeat(numbers[len(numbers)-1:], 200)...) }
	return []shape{
		{"a leak", grow(4, 40, 1), true, true},
		{"a slow leak", grow(4, 15, 30), true, true},
		{"a leak that rests now and then", append(append(grow(4, 12, 2), slices.Repeat([]int{16}, 15)...), 17), true, true},
		{"flat", rest([]int{40}), false, false},
		{"a step and a plateau", rest([]int{4, 4, 4, 40}), false, false},
		{"two steps and a plateau", rest([]int{4, 4, 20, 20, 20, 40}), false, false},
		{"a warm-up and a plateau", rest(grow(4, 9, 1)), false, false},
		{"one more each hour and a plateau", rest(grow(5, 12, 360)), false, false},
		{"a fleet that grows and a plateau", rest(grow(4, 30, 8)), true, false},
		{"a fleet that grows slowly and a plateau", rest(grow(4, 15, 30)), true, false},
		{"up and down", slices.Repeat([]int{4, 8, 12, 16, 20}, 20), false, false},
	}
}

// wantShapes shows a probe all shapes: follow makes it anew, and what it gives reads it with a number. climbing and leaked
// say what the reading tells.
func wantShapes(t *testing.T, follow func(t *testing.T) (read func(n int) probes.Reading)) {
	t.Helper()
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			read := follow(t)
			var last probes.Reading
			for i, n := range s.numbers {
				last = read(n)
				if last.Leaked {
					t.Fatalf("read %d, of %d: leaked, which a number cannot prove: %+v", i, n, last)
				}
				if last.Climbing && !s.climbs {
					t.Fatalf("read %d, of %d: climbing: %+v", i, n, last)
				}
			}
			if last.Climbing != s.leak {
				t.Errorf("at the end, with %v: climbing %t, want %t", last.Count, last.Climbing, s.leak)
			}
		})
	}
}
