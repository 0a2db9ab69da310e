package leakguard

import (
	"slices"
	"time"
)

// maxEndings bounds the endings that a place remembers.
const maxEndings = 128

// endings remembers the goroutines of a place that ended by themselves: they speak against a leak.
type endings struct {
	list    []ending
	longest time.Duration // the longest life of any that ended, ever
	short   int           // how many ended before the grace was over
}

type ending struct {
	at    time.Time
	count int
	aged  bool // it was a survivor
}

// addCount notes that count units ended after they were seen alive for lived; one that did not outlive the grace only counts
// for longest.
func (e *endings) addCount(now time.Time, lived time.Duration, count int, t timing) {
	e.longest = max(e.longest, lived)
	if lived < t.grace {
		e.short += count
		return
	}
	if len(e.list) == maxEndings {
		e.list = slices.Delete(e.list, 0, 1)
	}
	e.list = append(e.list, ending{at: now, count: count, aged: lived >= t.aged})
}

// forget drops what is older than the memory.
func (e *endings) forget(now time.Time, memory time.Duration) {
	e.list = slices.DeleteFunc(e.list, func(x ending) bool { return now.Sub(x.at) > memory })
}

// empty reports whether nothing is remembered any more.
func (e *endings) empty(now time.Time, memory time.Duration) bool {
	e.forget(now, memory)
	return len(e.list) == 0
}

// counts gives how many units ended after the grace, and how many of those were survivors.
func (e *endings) counts() (late, aged int) {
	for _, x := range e.list {
		late += x.count
		if x.aged {
			aged += x.count
		}
	}
	return late, aged
}
