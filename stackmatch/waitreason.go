package stackmatch

import (
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// leafReasons says what a goroutine waits for by a frame near its leaf, in the words of a text dump's header. A star at
// the end stands for any rest. The frame nearest to the program decides, since runtime.semacquire1 is below many.
var leafReasons = []struct{ function, reason string }{
	{"runtime.chansend*", "chan send"},
	{"runtime.chanrecv*", "chan receive"},
	{"runtime.selectgo", "select"},
	{"runtime.block", "select (no cases)"},
	{"runtime.netpollblock", "IO wait"},
	{"internal/poll.runtime_pollWait", "IO wait"},
	{"runtime.timeSleep", "sleep"},
	{"time.Sleep", "sleep"},
	{"runtime.notifyListWait", "sync.Cond.Wait"},
	{"sync.runtime_notifyListWait", "sync.Cond.Wait"},
	{"sync.runtime_SemacquireWaitGroup", "sync.WaitGroup.Wait"},
	{"sync.(*WaitGroup).Wait", "sync.WaitGroup.Wait"},
	{"sync.runtime_SemacquireRWMutexR", "sync.RWMutex.RLock"},
	{"sync.(*RWMutex).RLock", "sync.RWMutex.RLock"},
	{"sync.runtime_SemacquireRWMutex", "sync.RWMutex.Lock"},
	{"sync.runtime_SemacquireMutex", "sync.Mutex.Lock"},
	{"internal/sync.runtime_SemacquireMutex", "sync.Mutex.Lock"},
	{"runtime.semacquire*", "semacquire"},
	{"sync.runtime_Semacquire", "semacquire"},
	{"os/signal.signal_recv", "syscall"},
	{"runtime.notetsleepg", "syscall"},
	{"runtime.cgocall", "syscall"},
	{"syscall.Syscall*", "syscall"},
	{"syscall.RawSyscall*", "syscall"},
	{"runtime.coroswitch*", "coroutine"},
	{"runtime.gcBgMarkWorker", "GC worker (idle)"},
	{"runtime.forcegchelper", "force gc (idle)"},
	{"runtime.bgsweep", "GC sweep wait"},
	{"runtime.bgscavenge", "GC scavenge wait"},
	{"runtime.runfinq", "finalizer wait"},
	{"runtime.runFinalizers", "finalizer wait"},
	{"runtime.runCleanups", "cleanup wait"},
	{"runtime/pprof.runtime_goroutineProfileWithLabels", "running"},
	{"runtime.goroutineProfileWithLabels*", "running"},
}

// maxLeafFrames is how deep a parked goroutine's wait can be seen: the deepest is that of a mutex.
const maxLeafFrames = 6

// waitReason reads from the frames of a profile, leaf first and with the runtime's, what a goroutine waits for. It is
// empty when they do not tell. A channel that is nil looks like any other.
func waitReason(frames []frame.Frame) string {
	reason := ""
	for i, f := range frames {
		if i == maxLeafFrames {
			break
		}
		r := leafReason(f.Function)
		if r == "" && !isRuntime(f.Function) && i > 0 && reason != "" {
			break
		}
		if r != "" {
			reason = r
		}
	}
	return reason
}

func leafReason(function string) string {
	for _, l := range leafReasons {
		prefix, open := strings.CutSuffix(l.function, "*")
		if function == prefix || open && strings.HasPrefix(function, prefix) {
			return l.reason
		}
	}
	return ""
}
