package probes

import (
	"context"
	"fmt"
	"runtime/metrics"
	"sync"
	"time"
)

// ProcessName is the name of [Process] as a probe.
const ProcessName = "process"

// Process counts what belongs to the whole process: files by kind, threads, finalizers and cleanups that wait, goroutines
// created, child processes. Files and children are counted on Linux only, from /proc; elsewhere they are left out. It is a [Probe].
type Process struct {
	start   time.Time
	samples []metrics.Sample
	proc    string // where the process is described, "/proc/self"

	mu      sync.Mutex
	created uint64
	at      time.Duration
	stuck   map[string]*stuckQueue
	zombies map[int]bool
	climb   Climb
}

// stuckQueue follows a queue of the runtime from one Read to the next.
type stuckQueue struct {
	executed uint64
	reads    int // in how many reads it has stood still with something in it
}

// stuckReads is for how many reads a queue of the runtime must have stood still to be called blocked: five minutes at the
// guard's default interval. What waits for a server that does not answer takes minutes, and goes on.
const stuckReads = 30

// The runtime metrics that are read, in the order of Process.samples.
const (
	metricFinalizersQueued = iota
	metricFinalizersExecuted
	metricCleanupsQueued
	metricCleanupsExecuted
	metricCreated
	metricThreads
	metricCount
)

// NewProcess gives a probe of the running process.
func NewProcess() *Process { return newProcess("/proc/self") }

func newProcess(proc string) *Process {
	p := &Process{start: time.Now(), proc: proc, samples: make([]metrics.Sample, metricCount), stuck: map[string]*stuckQueue{}}
	for i, name := range [metricCount]string{
		"/gc/finalizers/queued:finalizers", "/gc/finalizers/executed:finalizers",
		"/gc/cleanups/queued:cleanups", "/gc/cleanups/executed:cleanups",
		"/sched/goroutines-created:goroutines", "/sched/threads/total:threads",
	} {
		p.samples[i].Name = name
	}
	return p
}

// Name implements [Probe].
func (p *Process) Name() string { return ProcessName }

// Read implements [Probe].
func (p *Process) Read(_ context.Context, dst []Reading) []Reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	metrics.Read(p.samples)
	dst = p.queue(dst, "finalizers", metricFinalizersQueued, metricFinalizersExecuted)
	dst = p.queue(dst, "cleanups", metricCleanupsQueued, metricCleanupsExecuted)
	dst = p.createdRate(dst)
	if n, ok := p.value(metricThreads); ok {
		dst = append(dst, Reading{
			Resource: "threads", Count: float64(n), Covariate: -1,
			Reason: fmt.Sprintf("the process has %d threads, of which none ever ends but with a goroutine that locked it", n),
			Advice: "bound what calls into C or blocks in the kernel, such as reads of a hung volume, by a pool of workers; a goroutine that calls runtime.LockOSThread must end or unlock it",
		})
	}
	return p.readProc(dst)
}

// value gives a metric; ok is false when the runtime has none of this name.
func (p *Process) value(i int) (n uint64, ok bool) {
	if p.samples[i].Value.Kind() != metrics.KindUint64 {
		return 0, false
	}
	return p.samples[i].Value.Uint64(), true
}

// queue judges a queue of the runtime: one that has something in it and executes nothing is blocked by what runs now.
func (p *Process) queue(dst []Reading, what string, queuedAt, executedAt int) []Reading {
	queued, ok1 := p.value(queuedAt)
	executed, ok2 := p.value(executedAt)
	if !ok1 || !ok2 {
		return dst
	}
	return append(dst, p.judgeQueue(what, queued, executed))
}

func (p *Process) judgeQueue(what string, queued, executed uint64) Reading {
	s := p.stuck[what]
	if s == nil {
		s = &stuckQueue{}
		p.stuck[what] = s
	}
	waiting := queued - min(queued, executed)
	if waiting > 0 && (s.reads == 0 || s.executed == executed) {
		s.reads++
	} else {
		s.reads = min(1, int(min(waiting, 1)))
	}
	s.executed = executed
	r := Reading{Resource: what + " that wait", Count: float64(waiting), Covariate: -1, Trap: "S1-17c"}
	if s.reads >= stuckReads {
		r.Leaked = true
		r.Reason = fmt.Sprintf("%d %s wait and none has been executed since: the one that runs now does not return, and all objects behind it stay", waiting, what)
		r.Advice = "a finalizer or cleanup must not block: hand the work to a goroutine of its own, and prefer runtime.AddCleanup to runtime.SetFinalizer"
	}
	return r
}

// createdRate gives how many goroutines are created in a minute: what is started and ends by itself, again and again,
// shows in no other number.
func (p *Process) createdRate(dst []Reading) []Reading {
	created, ok := p.value(metricCreated)
	if !ok {
		return dst
	}
	now := time.Since(p.start)
	before, since := p.created, now-p.at
	first := p.at == 0
	p.created, p.at = created, max(now, 1)
	if first || since <= 0 {
		return dst
	}
	return append(dst, Reading{Resource: "goroutines created a minute", Count: float64(created-before) / since.Minutes(), Covariate: -1, Trap: "S1-01b"})
}
