package memstats

import "time"

// Delta is what changed between two samples of one process.
type Delta struct {
	// Interval is the time between the samples.
	Interval time.Duration
	// Restarted says that a counter went down: the samples are of two processes, and nothing else here is set.
	Restarted bool
	// Cycles is the number of GC cycles that finished between them.
	Cycles uint64
	// Aligned says that at least one cycle finished, so that the values below that speak of live memory compare two
	// states right after a GC. Without it they are zero: between two cycles garbage and leak look the same.
	Aligned bool
	// HeapLiveBytes is the change of live heap after GC; set when Aligned.
	HeapLiveBytes int64
	// HeapLivePerHour is the same as a rate; set when Aligned.
	HeapLivePerHour float64
	// AllocBytesPerSecond and AllocsPerSecond are the allocation rate. They say how hard the GC works, not what
	// leaks.
	AllocBytesPerSecond, AllocsPerSecond float64
	// CyclesForced is how many of Cycles the program asked for.
	CyclesForced uint64
	// GCPauses and GCPauseSeconds are the pauses of the cycles between the samples.
	GCPauses       uint64
	GCPauseSeconds float64
	// Goroutines is the change of the number of live ones.
	Goroutines int64
	// GoroutinesCreatedPerSecond moves even when every goroutine ends: it shows timer chains and goroutine storms.
	GoroutinesCreatedPerSecond float64
	// FinalizersPending and CleanupsPending are the changes of what waits.
	FinalizersPending, CleanupsPending int64
}

// Sub gives what changed since prev. It does not compare HeapAlloc, HeapInuse, Mallocs or Frees: between two GC
// cycles they move with garbage, see "Indicators" in the package documentation.
func (s *Sample) Sub(prev *Sample) Delta {
	d := Delta{Interval: s.Time.Sub(prev.Time)}
	if s.NumGC < prev.NumGC || s.TotalAlloc < prev.TotalAlloc || s.Mallocs < prev.Mallocs {
		d.Restarted = true
		return d
	}
	d.Cycles = s.NumGC - prev.NumGC
	d.CyclesForced = saturatingSub(s.NumForcedGC, prev.NumForcedGC)
	d.GCPauses = saturatingSub(s.GCPauses, prev.GCPauses)
	d.GCPauseSeconds = max(0, s.GCPauseSeconds-prev.GCPauseSeconds)
	d.Goroutines = signedDiff(s.Goroutines, prev.Goroutines)
	d.FinalizersPending = signedDiff(s.FinalizersPending(), prev.FinalizersPending())
	d.CleanupsPending = signedDiff(s.CleanupsPending(), prev.CleanupsPending())
	seconds := d.Interval.Seconds()
	if seconds > 0 {
		d.AllocBytesPerSecond = float64(s.TotalAlloc-prev.TotalAlloc) / seconds
		d.AllocsPerSecond = float64(s.Mallocs-prev.Mallocs) / seconds
		d.GoroutinesCreatedPerSecond = float64(saturatingSub(s.GoroutinesCreated, prev.GoroutinesCreated)) / seconds
	}
	if d.Cycles == 0 || prev.NumGC == 0 {
		return d
	}
	d.Aligned = true
	d.HeapLiveBytes = signedDiff(s.HeapLiveBytes, prev.HeapLiveBytes)
	if seconds > 0 {
		d.HeapLivePerHour = float64(d.HeapLiveBytes) / seconds * 3600
	}
	return d
}

func signedDiff(a, b uint64) int64 { return int64(a - b) }
