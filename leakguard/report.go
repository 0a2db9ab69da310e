package leakguard

import (
	"time"

	"github.com/leakguard/leakguard/probes"
)

// Report is all that the guard knows at one moment. It is immutable; its JSON form is what the debug page serves.
type Report struct {
	// Schema is FindingSchema.
	Schema int `json:"schema"`
	// At is when the sample behind it was taken; zero before the first.
	At time.Time `json:"at"`
	// Started is when the guard started; zero before.
	Started time.Time `json:"started"`
	// Sampling is how the guard itself is doing.
	Sampling Sampling `json:"sampling"`
	// Goroutines is the number of goroutines at At.
	Goroutines int `json:"goroutines"`
	// HeapLiveBytes is the live heap after the last garbage collection.
	HeapLiveBytes uint64 `json:"heap_live_bytes"`
	// Orphans is how many goroutines of ended reconciles are alive, findings or not; OrphansDropped is how many did not
	// fit into the bounded table.
	Orphans        int    `json:"orphans"`
	OrphansDropped uint64 `json:"orphans_dropped"`
	// Controllers are the controllers known to the guard, ordered by name.
	Controllers []ControllerReport `json:"controllers"`
	// Findings are ordered by state (firing, pending, listed, resolved), then by count, largest first.
	Findings []Finding `json:"findings"`
	// Notices are said once: settings that hide leaks, parts that could not be wired.
	Notices []string `json:"notices,omitempty"`
	// Probes is how the probes behave.
	Probes []probes.SetStats `json:"probes,omitempty"`
	// Readings is what the probes count, ordered by probe, resource and controller; ReadingsDropped is how many did not fit
	// into the bounded list of 256, or were no number.
	Readings        []Reading `json:"readings,omitempty"`
	ReadingsDropped int       `json:"readings_dropped,omitempty"`
}

// Sampling is how the guard itself is doing.
type Sampling struct {
	// IntervalSeconds is the interval now in force.
	IntervalSeconds float64 `json:"interval_seconds"`
	// Due and Taken count the periodic samples that the configured interval asked for since the start, and those taken.
	Due   uint64 `json:"due"`
	Taken uint64 `json:"taken"`
	// Levels is the cost of each sampling level, ordered by name.
	Levels []LevelReport `json:"levels"`
	// Errors counts samples that failed or could only be read in part.
	Errors uint64 `json:"errors"`
	// Panics counts panics inside the guard that were recovered; the part that panicked is switched off.
	Panics uint64 `json:"panics"`
}

// LevelReport is the cost of one sampling level since the start.
type LevelReport struct {
	// Level is "metrics", "profile", "dump", "heap" or "proof".
	Level string `json:"level"`
	// Taken and Skipped count samples of the level; Skipped are those that the budget forbade.
	Taken   uint64 `json:"taken"`
	Skipped uint64 `json:"skipped"`
	// Seconds is the time spent, Bytes the size of what was read.
	Seconds float64 `json:"seconds"`
	Bytes   uint64  `json:"bytes"`
}

// ControllerReport is what the guard sees of one controller, webhook or other scope.
type ControllerReport struct {
	// Name is the controller's name, "webhook" and the path for a webhook, or the name given to [Scope].
	Name string `json:"name"`
	// Instrumented is false when its reconciles or requests carry no label.
	Instrumented bool `json:"instrumented"`
	// Reconciles is how many reconciles have begun, InFlight how many have not ended.
	Reconciles uint64 `json:"reconciles"`
	InFlight   uint64 `json:"in_flight"`
	// Orphans is how many goroutines of its ended reconciles are alive.
	Orphans int `json:"orphans"`
	// Breaker is "open" while the controller is paused, "trial" while it is on trial after a pause, else empty.
	Breaker string `json:"breaker,omitempty"`
}

// Firing counts the findings that are firing.
func (r *Report) Firing() int { return r.count(StateFiring) }

func (r *Report) count(state State) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].State == state {
			n++
		}
	}
	return n
}
