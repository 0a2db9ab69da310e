package memstats

import (
	"math"
	"runtime/metrics"
	"time"
)

// Options configures a [Reader]. The zero value works.
type Options struct {
	// Limit gives the memory limit of the process's control group in bytes, ok false when there is none. It is asked
	// by [Reader.ReadProcess] only; nil means that the limit is not known. A library such as automemlimit reads
	// control groups of both versions.
	Limit func() (bytes uint64, ok bool)
	// ProcDir is where the proc file system of this process is; default "/proc/self". Only Linux reads it.
	ProcDir string
}

// Reader reads samples. It is not safe for concurrent use.
type Reader struct {
	options Options
	values  []metrics.Sample
	targets []target
	missing []string // shared with every Sample
	process process
}

// target says where one runtime metric goes.
type target struct {
	metric string
	put    func(*Sample, metrics.Value)
}

// NewReader gives a reader of all metrics that this Go release has; it reads nothing yet. Close releases what
// [Reader.ReadProcess] keeps open.
func NewReader(options Options) *Reader {
	if options.ProcDir == "" {
		options.ProcDir = "/proc/self"
	}
	r := &Reader{options: options}
	for _, t := range targets() {
		probe := []metrics.Sample{{Name: t.metric}}
		if metrics.Read(probe); probe[0].Value.Kind() == metrics.KindBad {
			r.missing = append(r.missing, t.metric)
			continue
		}
		r.values = append(r.values, metrics.Sample{Name: t.metric})
		r.targets = append(r.targets, t)
	}
	r.missing = r.process.open(options.ProcDir, r.missing)
	return r
}

// Close releases the files that ReadProcess keeps open. The Reader must not be used after it.
func (r *Reader) Close() error { return r.process.close() }

// Read fills s from the runtime: no stop-the-world, no allocation, one to two microseconds. It leaves ResidentBytes,
// OpenFDs and LimitBytes of an earlier [Reader.ReadProcess] as they are.
func (r *Reader) Read(s *Sample) {
	s.Time = time.Now()
	metrics.Read(r.values)
	s.HeapInuse, s.HeapIdle, s.Mallocs, s.Frees = 0, 0, 0, 0 // sums of several metrics
	for i := range r.targets {
		r.targets[i].put(s, r.values[i].Value)
	}
	s.Missing = r.missing
}

// ReadProcess fills what the kernel must be asked for: the resident set, the open file descriptors and the memory
// limit. It makes a few system calls (tens of microseconds, more with thousands of descriptors on kernels before
// 6.2), so ask less often than [Reader.Read]. It does not allocate, as long as Options.Limit does not.
func (r *Reader) ReadProcess(s *Sample) {
	s.ResidentBytes, s.OpenFDs = r.process.read()
	s.LimitBytes = 0
	if r.options.Limit == nil {
		return
	}
	if limit, ok := r.options.Limit(); ok {
		s.LimitBytes = limit
	}
}

// targets lists the metrics. Where one field is the sum of several, each adds its part.
func targets() []target {
	return append(heapTargets(), schedTargets()...)
}

func heapTargets() []target {
	return []target{
		{"/memory/classes/heap/objects:bytes", func(s *Sample, v metrics.Value) { s.HeapAlloc = v.Uint64(); s.HeapInuse += v.Uint64() }},
		{"/memory/classes/heap/unused:bytes", func(s *Sample, v metrics.Value) { s.HeapInuse += v.Uint64() }},
		{"/memory/classes/heap/free:bytes", func(s *Sample, v metrics.Value) { s.HeapIdle += v.Uint64() }},
		{"/memory/classes/heap/released:bytes", func(s *Sample, v metrics.Value) { s.HeapReleased = v.Uint64(); s.HeapIdle += v.Uint64() }},
		{"/memory/classes/heap/stacks:bytes", func(s *Sample, v metrics.Value) { s.StackInuse = v.Uint64() }},
		{"/memory/classes/total:bytes", func(s *Sample, v metrics.Value) { s.Sys = v.Uint64() }},
		{"/gc/heap/objects:objects", func(s *Sample, v metrics.Value) { s.HeapObjects = v.Uint64() }},
		{"/gc/heap/allocs:bytes", func(s *Sample, v metrics.Value) { s.TotalAlloc = v.Uint64() }},
		{"/gc/heap/allocs:objects", func(s *Sample, v metrics.Value) { s.Mallocs += v.Uint64() }},
		{"/gc/heap/frees:objects", func(s *Sample, v metrics.Value) { s.Frees += v.Uint64() }},
		// MemStats counts the objects that share a block of the tiny allocator in both.
		{"/gc/heap/tiny/allocs:objects", func(s *Sample, v metrics.Value) { s.Mallocs += v.Uint64(); s.Frees += v.Uint64() }},
		{"/gc/heap/live:bytes", func(s *Sample, v metrics.Value) { s.HeapLiveBytes = v.Uint64() }},
		{"/gc/heap/goal:bytes", func(s *Sample, v metrics.Value) { s.NextGC = v.Uint64() }},
		{"/gc/cycles/total:gc-cycles", func(s *Sample, v metrics.Value) { s.NumGC = v.Uint64() }},
		{"/gc/cycles/forced:gc-cycles", func(s *Sample, v metrics.Value) { s.NumForcedGC = v.Uint64() }},
		{"/gc/gomemlimit:bytes", func(s *Sample, v metrics.Value) { s.MemoryLimit = v.Uint64() }},
		{"/gc/finalizers/queued:finalizers", func(s *Sample, v metrics.Value) { s.FinalizersQueued = v.Uint64() }},
		{"/gc/finalizers/executed:finalizers", func(s *Sample, v metrics.Value) { s.FinalizersExecuted = v.Uint64() }},
		{"/gc/cleanups/queued:cleanups", func(s *Sample, v metrics.Value) { s.CleanupsQueued = v.Uint64() }},
		{"/gc/cleanups/executed:cleanups", func(s *Sample, v metrics.Value) { s.CleanupsExecuted = v.Uint64() }},
		{"/sched/pauses/total/gc:seconds", func(s *Sample, v metrics.Value) { s.putPauses(v.Float64Histogram()) }},
	}
}

func schedTargets() []target {
	return []target{
		{"/sched/goroutines:goroutines", func(s *Sample, v metrics.Value) { s.Goroutines = v.Uint64() }},
		{"/sched/goroutines/waiting:goroutines", func(s *Sample, v metrics.Value) { s.GoroutinesWaiting = v.Uint64() }},
		{"/sched/goroutines/runnable:goroutines", func(s *Sample, v metrics.Value) { s.GoroutinesRunnable = v.Uint64() }},
		{"/sched/goroutines/running:goroutines", func(s *Sample, v metrics.Value) { s.GoroutinesRunning = v.Uint64() }},
		{"/sched/goroutines/not-in-go:goroutines", func(s *Sample, v metrics.Value) { s.GoroutinesNotInGo = v.Uint64() }},
		{"/sched/goroutines-created:goroutines", func(s *Sample, v metrics.Value) { s.GoroutinesCreated = v.Uint64() }},
		{"/sched/threads/total:threads", func(s *Sample, v metrics.Value) { s.Threads = v.Uint64() }},
	}
}

// putPauses sums the pause histogram up. Every bucket counts with its middle.
func (s *Sample) putPauses(h *metrics.Float64Histogram) {
	s.GCPauses, s.GCPauseSeconds, s.GCPauseMaxSeconds = 0, 0, 0
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		low, high := h.Buckets[i], h.Buckets[i+1]
		if math.IsInf(high, 1) {
			high = low
		}
		low = max(low, 0)
		s.GCPauses += n
		s.GCPauseSeconds += float64(n) * (low + high) / 2
		s.GCPauseMaxSeconds = high
	}
}
