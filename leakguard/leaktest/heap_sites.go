package leaktest

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// maxSites bounds the sites of a report, maxRecorded the calls during which every allocation is recorded.
const (
	maxSites    = 5
	maxRecorded = 2000
	// maxRecording bounds the time of these calls.
	maxRecording = 2 * time.Second
)

// GrowingSite is a stack whose allocations stay alive.
type GrowingSite struct {
	// Bytes and Objects stay per iteration.
	Bytes, Objects float64
	// Stack is the allocating calls, leaf first.
	Stack []frame.Frame
	// Blame is the frame to look at.
	Blame frame.Frame
	// Advice says what such a site mostly is; may be empty.
	Advice string
}

// profileRate guards [runtime.MemProfileRate].
var profileRate sync.Mutex

// sites calls the function on with every allocation recorded, and gives the stacks whose allocations stay.
func (h *heapRun) sites() []GrowingSite {
	n := min(maxRecorded, heapRounds*h.config.iterations)
	var first, last bytes.Buffer
	n, err := h.record(n, &first, &last)
	if err != nil {
		return nil // to a buffer it does not fail
	}
	a, err := memstats.ReadHeap(first.Bytes())
	if err != nil {
		return nil
	}
	b, err := memstats.ReadHeap(last.Bytes())
	if err != nil {
		return nil
	}
	return growingSites(a, b, n)
}

// record writes the heap profile before and after at most n calls, and gives how many there were. The loop makes one call more
// before, so that what a call leaves until the next is in both profiles, under the same stack.
func (h *heapRun) record(n int, first, last *bytes.Buffer) (calls int, err error) {
	profileRate.Lock()
	defer profileRate.Unlock()
	before := runtime.MemProfileRate
	defer func() { runtime.MemProfileRate = before }()
	runtime.MemProfileRate = 1
	start := time.Now()
	for calls = -1; calls <= 0 || calls < n && time.Since(start) < maxRecording; calls++ {
		if calls == 0 {
			if err = writeHeap(first); err != nil {
				return 0, err
			}
			start = time.Now()
		}
		h.call(1)
	}
	err = writeHeap(last)
	runtime.KeepAlive(h) // what leaks may hang on the function
	return calls, err
}

// writeHeap writes the heap profile of now, which is that of the last but one collection.
func writeHeap(w *bytes.Buffer) error {
	for range 3 {
		runtime.GC()
	}
	return pprof.Lookup("heap").WriteTo(w, 0)
}

// ownSite reports whether this package allocated for itself.
func ownSite(stack []frame.Frame) bool {
	return slices.ContainsFunc(stack, func(f frame.Frame) bool { return strings.HasSuffix(f.Function, "/leaktest.writeHeap") })
}

// growingSites compares two profiles with n calls between them.
func growingSites(first, last *memstats.Heap, n int) []GrowingSite {
	var grown []GrowingSite
	for _, p := range memstats.PairSites(first, last) {
		g := GrowingSite{
			Bytes:   (p.Last.InuseBytes - p.First.InuseBytes) / float64(n),
			Objects: (p.Last.InuseObjects - p.First.InuseObjects) / float64(n), Stack: p.Stack,
		}
		if g.Bytes <= 0 || ownSite(p.Stack) {
			continue
		}
		g.Blame = memstats.BlameSite(p.Stack, mainModule()).Frame
		g.Advice = memstats.HintOf(p.Stack).Advice
		grown = append(grown, g)
	}
	slices.SortFunc(grown, func(a, b GrowingSite) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for i := range grown {
		if i == maxSites || grown[i].Bytes < grown[0].Bytes/20 {
			return grown[:i]
		}
	}
	return grown
}

// maxSiteFrames bounds the frames that are shown of a site.
const maxSiteFrames = 12

func (s *GrowingSite) describe(b *strings.Builder) {
	fmt.Fprintf(b, "    %.1f bytes, %.2f objects per iteration stay of %s\n", s.Bytes, s.Objects, s.Blame)
	if s.Advice != "" {
		fmt.Fprintf(b, "        %s\n", s.Advice)
	}
	for i, f := range s.Stack {
		if i == maxSiteFrames {
			fmt.Fprintf(b, "        … %d more frames\n", len(s.Stack)-i)
			break
		}
		fmt.Fprintf(b, "        %s\n            %s:%d\n", f.Function, f.File, f.Line)
	}
}
