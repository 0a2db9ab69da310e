package stackmatch

import (
	"slices"
	"time"
)

// waitCounts is how many goroutines of a group have waited how long. Neighbours in a dump often have waited equally
// long, so a run of equal waits costs one addition each.
type waitCounts struct {
	counts map[time.Duration]int
	last   time.Duration
	run    int
}

func (w *waitCounts) add(wait time.Duration) {
	if wait != w.last {
		w.settle()
		w.last = wait
	}
	w.run++
}

func (w *waitCounts) settle() {
	if w.run == 0 {
		return
	}
	if w.counts == nil {
		w.counts = map[time.Duration]int{}
	}
	w.counts[w.last] += w.run
	w.run = 0
}

// rangeOf gives the longest wait and the middle one; of an even number the lower of the two.
func (w *waitCounts) rangeOf() (oldest, median time.Duration) {
	if w.counts == nil { // all have waited equally long, or none is known
		return w.last, w.last
	}
	w.settle()
	total := 0
	sorted := make([]time.Duration, 0, len(w.counts))
	for wait, n := range w.counts {
		total += n
		sorted = append(sorted, wait)
	}
	slices.Sort(sorted)
	below := 0
	for _, wait := range sorted {
		if below += w.counts[wait]; 2*below >= total {
			median = wait
			break
		}
	}
	return sorted[len(sorted)-1], median
}
