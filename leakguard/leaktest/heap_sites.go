package leaktest

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// maxSites bounds the sites of a report, maxRecorded the calls during which every allocation is recorded.
const (
	maxSites    = 5
	maxRecorded = 2000
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

// profileRate guards runtime.MemProfileRate.
var profileRate sync.Mutex

// sites calls the function on with every allocation recorded, and gives the stacks whose allocations stay.
func (h *heapRun) sites() []GrowingSite {
	profileRate.Lock()
	defer profileRate.Unlock()
	before := runtime.MemProfileRate
	defer func() { runtime.MemProfileRate = before }()
	runtime.MemProfileRate = 1
	n := min(maxRecorded, heapRounds*h.config.iterations)
	first := h.profile()
	h.call(n)
	last := h.profile()
	if first == nil || last == nil {
		return nil
	}
	return growingSites(first, last, n)
}

// profile gives the heap profile of now, which is that of the last but one collection.
func (h *heapRun) profile() *memstats.Heap {
	for range 3 {
		runtime.GC()
	}
	var b bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&b, 0); err != nil {
		return nil // to a buffer it does not fail
	}
	heap, err := memstats.ReadHeap(b.Bytes())
	if err != nil {
		return nil
	}
	return heap
}

// growingSites compares two profiles with n calls between them.
func growingSites(first, last *memstats.Heap, n int) []GrowingSite {
	before := map[string]memstats.Site{}
	for _, s := range first.Sites {
		before[stackKey(s.Stack)] = s
	}
	var grown []GrowingSite
	for _, s := range last.Sites {
		was := before[stackKey(s.Stack)]
		g := GrowingSite{
			Bytes:   (s.InuseBytes - was.InuseBytes) / float64(n),
			Objects: (s.InuseObjects - was.InuseObjects) / float64(n), Stack: s.Stack,
		}
		if g.Bytes <= 0 {
			continue
		}
		g.Blame = memstats.BlameSite(s.Stack, mainModule()).Frame
		g.Advice = memstats.HintOf(s.Stack).Advice
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

func stackKey(stack []frame.Frame) string {
	var b strings.Builder
	for _, f := range stack {
		b.WriteString(f.Function)
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(f.Line))
		b.WriteByte('\n')
	}
	return b.String()
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
