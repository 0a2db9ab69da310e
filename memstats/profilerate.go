package memstats

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Bounds of [RaiseMemProfileRate].
const (
	// LeastMemProfileRate is the smallest rate that it sets, in bytes: sixteen times as many samples as by default.
	LeastMemProfileRate = 32 << 10
	// LongestRaise is how long it waits at most.
	LongestRaise = time.Hour
)

// raising lets one raise at a time: the rate is a variable of the whole process.
var raising sync.Mutex

// RaiseMemProfileRate samples the heap more often for a while, so that a slow leak of small objects shows: at the
// default of one sample per 512 KiB a leaked timer is seen once in three thousand times. It sets
// [runtime.MemProfileRate] to rate, but not below [LeastMemProfileRate], waits for d, at most [LongestRaise], or until
// ctx ends, and sets the old rate again. It does nothing, and returns false, when profiling is off (rate 0), already
// as fine, or another raise is running.
//
// It blocks. The runtime warns that profiles are scaled with the rate in force when they are taken: what was sampled
// before the raise is then scaled wrongly, so compare two profiles that were both taken during one raise. The
// rate is a plain variable: the race detector reports a raise beside another goroutine that reads it, as one that
// writes a heap profile does. Each sample costs about a microsecond and memory for its stack, both a small part of an
// operator's at the least rate.
func RaiseMemProfileRate(ctx context.Context, rate int, d time.Duration) bool {
	if !raising.TryLock() {
		return false
	}
	defer raising.Unlock()
	before := runtime.MemProfileRate
	rate = max(rate, LeastMemProfileRate)
	if before == 0 || before <= rate || d <= 0 {
		return false
	}
	timer := time.NewTimer(min(d, LongestRaise))
	defer timer.Stop()
	runtime.MemProfileRate = rate
	defer func() { runtime.MemProfileRate = before }()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}
