package memstats

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// MaxHeapBytes is the longest heap profile that is read.
const MaxHeapBytes = 256 << 20

// ErrHeapProfile is the reason why a heap profile cannot be read; the error that wraps it says where.
var ErrHeapProfile = errors.New("memstats: bad heap profile")

// Heap is a heap profile: what was in use, and what was ever allocated, by the stack that allocated it. Numbers are
// estimates for the whole process, scaled up from the sampled objects.
type Heap struct {
	// Time is when it was taken; zero when the profile does not say (the text form never does).
	Time time.Time
	// Rate is runtime.MemProfileRate: one object is sampled per so many allocated bytes, on average.
	Rate int64
	// Sites are the allocation stacks, in the profile's order.
	Sites []Site
	// HeapAlloc and TotalAlloc are MemStats' values at that time, zero when the profile does not have them (the
	// binary form never does).
	HeapAlloc, TotalAlloc uint64
	// NumGC is the number of GC cycles until then, zero when the profile does not have it.
	NumGC uint64
}

// Site is what one stack allocated.
type Site struct {
	// Stack is the allocating stack, leaf first.
	Stack []frame.Frame
	// InuseBytes and InuseObjects are alive, AllocBytes and AllocObjects were ever allocated: estimates for the whole
	// process.
	InuseBytes, InuseObjects, AllocBytes, AllocObjects float64
	// Sampled is the number of sampled objects that InuseObjects is estimated from: its error is about its square
	// root.
	Sampled float64
}

// InuseBytes is the sum over all sites.
func (h *Heap) InuseBytes() (sum float64) {
	for i := range h.Sites {
		sum += h.Sites[i].InuseBytes
	}
	return sum
}

// ReadHeap reads a heap profile in either form: binary (compressed or not), as pprof endpoints give it by default, or
// the text of debug=1. Of a damaged text profile it gives the sites before the damage, and an error with the line.
func ReadHeap(data []byte) (*Heap, error) {
	if len(data) > MaxHeapBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrHeapProfile, len(data), MaxHeapBytes)
	}
	if bytes.HasPrefix(bytes.TrimLeft(data, " \r\n\t"), []byte("heap profile:")) {
		return readHeapText(data)
	}
	return readHeapBinary(data)
}

// scale is by how much a site's sampled numbers are too small: an object of size bytes is sampled with probability
// 1-exp(-size/rate) (the same formula as in runtime/pprof's scaleHeapSample). At a rate of one every object is sampled.
func scale(size float64, rate int64) float64 {
	if rate <= 1 || !(size > 0) {
		return 1
	}
	return -1 / math.Expm1(-size/float64(rate)) // 1-exp(-x) is zero for a tiny x
}

// SmallestSeen says what a profile at this rate can see: how many leaked objects of a size it takes until about four
// of them are sampled, which is the least that [HeapGrowth] believes. At the default rate of 512 KiB that is 12,500
// timers of 168 bytes, or four objects of several MiB.
func SmallestSeen(objectBytes float64, rate int64) (objects float64) {
	const believed = 4
	return believed * scale(objectBytes, rate)
}
