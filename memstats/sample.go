package memstats

import "time"

// Sample is one reading of the runtime and, when [Reader.ReadProcess] filled it, of the process. Fields that
// [runtime.MemStats] has too carry its names and hold what it would hold. All counters start with the process.
//
// A metric that this Go release or platform does not have leaves its field zero and its name in Missing: zero alone
// never means "none".
type Sample struct {
	// Time is when the reading was taken.
	Time time.Time

	// HeapAlloc is the bytes of heap objects, live ones and those that no GC has swept yet.
	HeapAlloc uint64
	// HeapInuse is the bytes in spans that hold at least one object.
	HeapInuse uint64
	// HeapIdle is the bytes in spans without objects, those given back to the system included.
	HeapIdle uint64
	// HeapReleased is the part of HeapIdle given back to the system.
	HeapReleased uint64
	// HeapObjects is the number of heap objects, swept or not.
	HeapObjects uint64
	// HeapLiveBytes is the bytes that the last finished GC cycle found reachable: the number to watch for leaks. It
	// is zero before the first cycle.
	HeapLiveBytes uint64
	// NextGC is the heap size at which the next cycle ends.
	NextGC uint64
	// StackInuse is the bytes of goroutine stacks.
	StackInuse uint64
	// Sys is the bytes that the runtime has mapped.
	Sys uint64
	// TotalAlloc is the bytes ever allocated.
	TotalAlloc uint64
	// Mallocs is the number of objects ever allocated, tiny ones included.
	Mallocs uint64
	// Frees is the number of objects ever freed, tiny ones included.
	Frees uint64
	// NumGC is the number of finished GC cycles, NumForcedGC those that the program asked for.
	NumGC, NumForcedGC uint64
	// GCPauses is the number of stop-the-world pauses that GC cycles made; a cycle makes two or more.
	GCPauses uint64
	// GCPauseSeconds is their total time, taken from a histogram: within a factor of about 1.3.
	GCPauseSeconds float64
	// GCPauseMaxSeconds is the upper bound of the longest of them so far.
	GCPauseMaxSeconds float64
	// MemoryLimit is GOMEMLIMIT in bytes, math.MaxInt64 when it is off.
	MemoryLimit uint64

	// Goroutines is the number of live goroutines; the four below are its parts by state (Go 1.26).
	Goroutines uint64
	// GoroutinesWaiting is how many wait for something.
	GoroutinesWaiting uint64
	// GoroutinesRunnable is how many could run and have no processor.
	GoroutinesRunnable uint64
	// GoroutinesRunning is how many run.
	GoroutinesRunning uint64
	// GoroutinesNotInGo is how many are in a system call or in C.
	GoroutinesNotInGo uint64
	// GoroutinesCreated is the number of goroutines ever started (Go 1.26).
	GoroutinesCreated uint64
	// Threads is the number of operating system threads that the runtime owns (Go 1.26).
	Threads uint64

	// FinalizersQueued and FinalizersExecuted are counters; a gap that grows is a finalizer that blocks all others.
	FinalizersQueued, FinalizersExecuted uint64
	// CleanupsQueued and CleanupsExecuted are the same for runtime.AddCleanup.
	CleanupsQueued, CleanupsExecuted uint64

	// ResidentBytes is the process's resident set. [Reader.ReadProcess] fills it, on Linux.
	ResidentBytes uint64
	// OpenFDs is the number of open file descriptors. [Reader.ReadProcess] fills it, on Linux.
	OpenFDs uint64
	// LimitBytes is the memory limit of the process's control group, zero when there is none or nobody told.
	// [Reader.ReadProcess] fills it from Options.Limit.
	LimitBytes uint64

	// Missing names the runtime metrics and process readings that could not be had. The Reader owns it: do not change
	// it.
	Missing []string
}

// FinalizersPending is how many finalizers wait for their turn.
func (s *Sample) FinalizersPending() uint64 {
	return saturatingSub(s.FinalizersQueued, s.FinalizersExecuted)
}

// CleanupsPending is how many cleanups wait for their turn.
func (s *Sample) CleanupsPending() uint64 {
	return saturatingSub(s.CleanupsQueued, s.CleanupsExecuted)
}

func saturatingSub(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}
