package stackmatch

import (
	"slices"
	"time"
)

// waitList is how long goroutines have waited, in minutes. What comes in is kept one by one, until it is much: then it is
// counted, so that a dump of a million goroutines needs no more memory than one of a thousand.
type waitList struct{ list []ownedWait }

type ownedWait struct {
	owner   int32 // index of the tally
	minutes int32
}

// maxWaits is how many waits are kept one by one.
const maxWaits = 64 << 10

func (w *waitList) add(owner int32, wait time.Duration, tallies []*tally) {
	if len(w.list) == maxWaits {
		w.count(tallies)
	}
	w.list = append(w.list, ownedWait{owner, int32(min(wait/time.Minute, maxMinutes))})
}

// count moves the waits to the tallies' tables.
func (w *waitList) count(tallies []*tally) {
	for _, o := range w.list {
		t := tallies[o.owner]
		if t.minutes == nil {
			t.minutes = map[int32]int{}
		}
		t.minutes[o.minutes]++
	}
	w.list = w.list[:0]
}

// finish gives all tallies their longest wait and the middle one; of an even number the lower of the two.
func (w *waitList) finish(tallies []*tally) {
	counted := slices.ContainsFunc(tallies, func(t *tally) bool { return t.minutes != nil })
	if counted {
		w.count(tallies)
		for _, t := range tallies {
			t.oldest, t.median = countedRange(t.minutes)
		}
		return
	}
	sizes := make([]int, len(tallies)+1) // then where each tally's part of sorted ends
	for _, o := range w.list {
		sizes[o.owner+1]++
	}
	for i := range tallies {
		sizes[i+1] += sizes[i]
	}
	sorted := make([]int32, len(w.list))
	for _, o := range w.list {
		sorted[sizes[o.owner]] = o.minutes
		sizes[o.owner]++
	}
	from := 0
	for i, t := range tallies {
		part := sorted[from:sizes[i]]
		from = sizes[i]
		if len(part) > 0 {
			slices.Sort(part)
			t.oldest, t.median = inMinutes(part[len(part)-1]), inMinutes(part[(len(part)-1)/2])
		}
	}
}

func countedRange(counts map[int32]int) (oldest, median time.Duration) {
	if len(counts) == 0 {
		return 0, 0
	}
	total := 0
	sorted := make([]int32, 0, len(counts))
	for minutes, n := range counts {
		total += n
		sorted = append(sorted, minutes)
	}
	slices.Sort(sorted)
	below := 0
	for _, minutes := range sorted {
		if below += counts[minutes]; 2*below >= total {
			median = inMinutes(minutes)
			break
		}
	}
	return inMinutes(sorted[len(sorted)-1]), median
}

func inMinutes(n int32) time.Duration { return time.Duration(n) * time.Minute }
