package leakguard

import (
	"time"

	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch"
)

// Evidence is everything that one tick has measured. The detector keeps nothing of it but the frames of groups, which
// are immutable.
type Evidence struct {
	// At is when the goroutine profile was taken. It must not go back from one Evidence to the next.
	At time.Time
	// Groups are the goroutines of the cheap profile, in any order.
	Groups []stackmatch.Group
	// InFlight are the spans that had not ended when the profile had been taken, ordered by ID.Seq.
	InFlight []probes.Open
	// Objects knows which objects live; nil when nobody does.
	Objects Objects
	// Readings are what the probes count.
	Readings []probes.Reading
	// Load is the work that the operator has before it, from controller-runtime's metrics; its zero value means unknown.
	Load Load
	// Memory is the process's own numbers; its zero value means that they were not read.
	Memory memstats.Sample
	// Heaps are heap profiles in time order, because [Detector.NeedsHeaps] asked for them; nil otherwise.
	Heaps []*memstats.Heap
	// Proof is the goroutines that the runtime's leak profile has marked; nil when it was not asked, empty when it has
	// marked none.
	Proof []stackmatch.Group
	// Dump is a full dump, taken because [Detector.NeedsDump] asked for it; nil otherwise.
	Dump *stackmatch.Dump
	// DumpRefused is set when a dump was asked for and the budget forbade it.
	DumpRefused bool
}

// Load is the work before an operator. Growth that follows it is a backlog, not a leak.
type Load struct {
	// Known is set when the metrics were read.
	Known bool
	// QueueDepth is how many requests wait in all workqueues.
	QueueDepth float64
	// Reconciles counts the reconciles of instrumented controllers that have begun so far; it is known at all times.
	Reconciles uint64
	// QueueSeconds and ReconcileSeconds are the mean time that a request of the last tick waited, and that a reconcile took.
	QueueSeconds, ReconcileSeconds float64
}

// Objects tells whether the objects of reconciles live. [probes.ObjectIndex] implements it.
type Objects interface {
	// State says whether an object of a controller lives; since is when it was found gone. It must be safe to call
	// from the detector's goroutine while others feed it.
	State(controller string, object probes.Object) (state probes.ObjectState, since time.Time)
	// Total is how many live objects are known in all.
	Total() int
}

// inFlight reports whether a span had not ended.
func (e *Evidence) inFlight(seq uint64) bool {
	low, high := 0, len(e.InFlight)
	for low < high {
		middle := (low + high) / 2
		if e.InFlight[middle].ID.Seq < seq {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low < len(e.InFlight) && e.InFlight[low].ID.Seq == seq
}

// liveObjects is how many live objects are known, 0 when nobody knows.
func (e *Evidence) liveObjects() int {
	if e.Objects == nil {
		return 0
	}
	return e.Objects.Total()
}

// explaining is how many things may each have a goroutine of their own: live objects and waiting requests.
func (e *Evidence) explaining() int { return e.liveObjects() + int(e.Load.QueueDepth) }
