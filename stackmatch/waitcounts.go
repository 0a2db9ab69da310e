package stackmatch

import (
	"slices"
	"time"
)

// waitCounts is how many goroutines of a group have waited how long, in minutes.
type waitCounts struct {
	few    []int32 // the last ones, in no order
	counts map[int32]int
}

// maxFew is how many waits are kept one by one before they are counted.
const maxFew = 512

func (w *waitCounts) add(wait time.Duration) {
	if len(w.few) == maxFew {
		w.settle()
	}
	w.few = append(w.few, int32(min(wait/time.Minute, maxMinutes)))
}

func (w *waitCounts) settle() {
	if w.counts == nil {
		w.counts = map[int32]int{}
	}
	for _, minutes := range w.few {
		w.counts[minutes]++
	}
	w.few = w.few[:0]
}

// oldestAndMedian gives the longest wait and the middle one; of an even number the lower of the two.
func (w *waitCounts) oldestAndMedian() (oldest, median time.Duration) {
	if w.counts == nil {
		if len(w.few) == 0 {
			return 0, 0
		}
		slices.Sort(w.few)
		return inMinutes(w.few[len(w.few)-1]), inMinutes(w.few[(len(w.few)-1)/2])
	}
	w.settle()
	total := 0
	sorted := make([]int32, 0, len(w.counts))
	for minutes, n := range w.counts {
		total += n
		sorted = append(sorted, minutes)
	}
	slices.Sort(sorted)
	below := 0
	for _, minutes := range sorted {
		if below += w.counts[minutes]; 2*below >= total {
			median = inMinutes(minutes)
			break
		}
	}
	return inMinutes(sorted[len(sorted)-1]), median
}

func inMinutes(n int32) time.Duration { return time.Duration(n) * time.Minute }
