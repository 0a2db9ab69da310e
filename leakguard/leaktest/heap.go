package leaktest

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// DefaultIterations is how often a round of [VerifyHeap] calls its function at first.
const DefaultIterations = 100

// The shape of a measurement: a window is some rounds, each of which ends with collections and a reading of the live heap.
// While it grows the next window has twice the iterations, so that what fills up has its time to be full.
const (
	heapRounds  = 10
	heapWindows = 5
	// minWindows is how many windows it takes to call a growth one, whatever the time.
	minWindows = 3
	// heapBytes and heapObjects are the growth per iteration from which it is one, unless [HeapAllowance] says otherwise.
	heapBytes   = 2
	heapObjects = 0.05
	// floorBytes and floorObjects are the least growth in the last window: less is the runtime's and the libraries' own, such as
	// goroutines that are kept for reuse.
	floorBytes   = 16 << 10
	floorObjects = 100
	// floorGoroutines is how many more goroutines there may be after all calls than before, if records of goroutines are all that
	// stays, but for reserveShare of the growth.
	floorGoroutines = 10
	reserveShare    = 0.1
	// reserveRecords is how many records of ended goroutines each processor keeps for the next ones, in runtime.gfput.
	reserveRecords = 64
	// A record, runtime.g, is in a size class above recordLeast bytes and up to recordMost; in Go 1.26 and 1.27 in that of 480.
	recordLeast, recordMost = 384, 512
	// keepsPace is the least growth of the last window by that of the one before, which had half the calls. What fills up slows
	// down; a map that doubles may do so twice in one window and once in the next, which is 4/3.
	keepsPace = 1.25
	// heapChance is the greatest probability of the growth without a trend.
	heapChance = 0.01
)

// DefaultHeapTime is how long [VerifyHeap] goes on at most to see whether a growth ends. Only growth costs that much.
const DefaultHeapTime = 20 * time.Second

// Iterations sets how often a round of [VerifyHeap] calls its function at first; the default is [DefaultIterations]. A quiet
// function is called eleven times as often in all, one whose heap grows up to 310 times.
func Iterations(n int) Option {
	return optionFunc(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("%w: Iterations(%d) is less than 1", ErrOption, n)
		}
		c.heap.iterations = n
		return nil
	})
}

// HeapTime sets how long [VerifyHeap] goes on at most to see whether a growth ends; the default is [DefaultHeapTime]. It
// takes three windows of ten rounds in any case.
func HeapTime(d time.Duration) Option {
	return optionFunc(func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("%w: HeapTime(%s) is not positive", ErrOption, d)
		}
		c.heap.time = d
		return nil
	})
}

// HeapAllowance sets the growth of the live heap per iteration that [VerifyHeap] lets pass, for a function that is to
// keep something. The default is 2 bytes and 0.05 objects.
func HeapAllowance(bytes, objects float64) Option {
	return optionFunc(func(c *config) error {
		if !(bytes > 0) || !(objects > 0) {
			return fmt.Errorf("%w: HeapAllowance(%g, %g) is not positive", ErrOption, bytes, objects)
		}
		c.heap.bytes, c.heap.objects = bytes, objects
		return nil
	})
}

type heapConfig struct {
	iterations     int
	time           time.Duration
	bytes, objects float64
}

func defaultHeap() heapConfig {
	return heapConfig{iterations: DefaultIterations, time: DefaultHeapTime, bytes: heapBytes, objects: heapObjects}
}

// Growth is how the live heap grows with the calls of a function, after garbage collections.
type Growth struct {
	// Iterations is how often the function was called in the last window, the one that is judged.
	Iterations int
	// Bytes and Objects are kept per iteration: the Theil–Sen slope.
	Bytes, Objects float64
	// BytesLow, BytesHigh, ObjectsLow and ObjectsHigh are the 95 % confidence intervals.
	BytesLow, BytesHigh, ObjectsLow, ObjectsHigh float64
	// Sites are the allocating stacks that carry the growth, the largest first, at most five.
	Sites []GrowingSite

	rises   bool
	total   [2]float64 // by how many bytes and objects it grew from the first round to the last
	records float64    // by how many bytes the objects grew that are as large as records of goroutines
}

// VerifyHeap calls f again and again and fails the test when the live heap grows with each call: the number of objects or
// of bytes that are alive after garbage collections. i counts the calls from 0.
//
// What fills up and stays is no leak: caches with a bound, pools, maps, lazy initialisation. While the heap grows the
// function is therefore called on, with ever longer rounds, and the test fails only when it has grown in every window and
// in the last one about as fast as before. A cache whose bound is beyond all these calls looks like a leak; see [Iterations].
//
// It stops the world for its collections, looks at the heap of the whole process, and so is refused in a parallel test
// ([ErrParallel]). A failing test costs up to [DefaultHeapTime] and a last window with every allocation recorded
// ([runtime.MemProfileRate] is 1 during at most 2,001 calls, and then what it was). Options are [Iterations], [HeapTime] and
// [HeapAllowance].
func VerifyHeap(t TB, f func(i int), opts ...Option) {
	t.Helper()
	c, err := newConfig(opts)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	if isParallel(t) {
		t.Errorf("%v: VerifyHeap measures the heap of the process, into which tests that run beside %s allocate too", ErrParallel, t.Name())
		return
	}
	h := newHeapRun(c.heap, f)
	h.goroutines = runtime.NumGoroutine()
	growth, leaks := h.judge()
	if !leaks {
		return
	}
	growth.Sites = h.sites()
	if h.onlyGoroutines(&growth) {
		return
	}
	t.Errorf("leaktest: %s", growth.describe(t.Name()))
}

// heapRun is one measurement.
type heapRun struct {
	config  heapConfig
	f       func(i int)
	calls   int
	samples []metrics.Sample
	// goroutines is how many there were before.
	goroutines int
}

// onlyGoroutines reports whether all that stays is the runtime's own records of goroutines, while there are not more of them
// than before. The runtime keeps the records for the next goroutines, as many as ever ran at once, and some more for each
// processor. They may come to be in the calls before the allocations are recorded; then what grew is as large as they are, or
// little. A site that keeps less than the allowance is none: one object more or less is chance.
func (h *heapRun) onlyGoroutines(g *Growth) bool {
	if runtime.NumGoroutine() > h.goroutines+floorGoroutines {
		return false
	}
	var records, others float64
	for _, s := range g.Sites {
		if slices.ContainsFunc(s.Stack, func(f frame.Frame) bool { return f.Function == "runtime.newproc1" }) {
			records += s.Bytes
		} else if s.Bytes >= h.config.bytes || s.Objects >= h.config.objects {
			others += s.Bytes
		}
	}
	reserve := float64(reserveRecords * runtime.GOMAXPROCS(0))
	few := g.total[0] < reserve*recordMost && g.total[1] < reserve
	return others < reserveShare*g.Bytes && (records > 0 || few || g.records >= (1-reserveShare)*g.total[0])
}

func newHeapRun(c heapConfig, f func(i int)) *heapRun {
	return &heapRun{config: c, f: f, samples: []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/objects:objects"},
		{Name: "/gc/heap/allocs-by-size:bytes"},
		{Name: "/gc/heap/frees-by-size:bytes"},
	}}
}

// judge measures windows until one does not grow, or all have.
func (h *heapRun) judge() (growth Growth, leaks bool) {
	start := time.Now()
	n := h.config.iterations
	h.call(n) // what is initialised lazily
	var before Growth
	for w := range heapWindows {
		before = growth
		if growth = h.window(n); !growth.rises {
			return growth, false
		}
		if w+1 >= minWindows && time.Since(start) > h.config.time {
			break
		}
		n *= 2
	}
	return growth, growth.goesOn(&before, 0, floorBytes) || growth.goesOn(&before, 1, floorObjects)
}

// goesOn reports whether the growth of bytes (0) or objects (1) is more than what the runtime may keep for itself, and has
// kept pace with the number of calls since the window before.
func (g *Growth) goesOn(before *Growth, i int, floor float64) bool {
	return g.total[i] >= floor && g.total[i] >= keepsPace*before.total[i]
}

// call calls the function n times.
func (h *heapRun) call(n int) {
	for range n {
		h.f(h.calls)
		h.calls++
	}
}

// window measures some rounds of n calls.
func (h *heapRun) window(n int) Growth {
	bytes := make([]memstats.Point, 0, heapRounds+1)
	objects := make([]memstats.Point, 0, heapRounds+1)
	var records [heapRounds + 1]float64
	for round := range heapRounds + 1 {
		if round > 0 {
			h.call(n)
		}
		b, o := h.live()
		records[round] = h.liveRecords()
		at := time.Unix(int64(round*n), 0) // an iteration is a second
		bytes = append(bytes, memstats.Point{Time: at, Value: b})
		objects = append(objects, memstats.Point{Time: at, Value: o})
	}
	const seconds = 3600
	b, o := memstats.FitTrend(bytes), memstats.FitTrend(objects)
	return Growth{
		Iterations: heapRounds * n,
		Bytes:      b.PerHour / seconds, BytesLow: b.LowPerHour / seconds, BytesHigh: b.HighPerHour / seconds,
		Objects: o.PerHour / seconds, ObjectsLow: o.LowPerHour / seconds, ObjectsHigh: o.HighPerHour / seconds,
		rises:   rises(b, bytes, h.config.bytes) || rises(o, objects, h.config.objects),
		total:   [2]float64{bytes[heapRounds].Value - bytes[0].Value, objects[heapRounds].Value - objects[0].Value},
		records: records[heapRounds] - records[0],
	}
}

// rises reports whether points grow by more than the allowance per iteration: surely by the interval of their trend, very
// probably by their order, or from the first to the last, since maps and slices grow in few large steps.
func rises(t memstats.Trend, points []memstats.Point, allowance float64) bool {
	first, last := points[0], points[len(points)-1]
	if last.Value-first.Value >= allowance*last.Time.Sub(first.Time).Seconds() {
		return true
	}
	perHour := allowance * time.Hour.Seconds()
	return t.LowPerHour >= perHour || t.PerHour >= perHour && t.P < heapChance
}

// live gives the bytes and objects that are alive after collections: the second one frees what finalizers and the victims of
// pools have held.
func (h *heapRun) live() (bytes, objects float64) {
	runtime.GC()
	runtime.GC()
	metrics.Read(h.samples)
	runtime.KeepAlive(h) // what leaks may hang on the function
	return float64(h.samples[0].Value.Uint64()), float64(h.samples[1].Value.Uint64())
}

// liveRecords gives the bytes of the live objects that are as large as records of goroutines, of the reading that live took.
func (h *heapRun) liveRecords() (bytes float64) {
	allocs, frees := h.samples[2].Value.Float64Histogram(), h.samples[3].Value.Float64Histogram()
	for i, n := range allocs.Counts {
		if size := allocs.Buckets[i+1] - 1; size > recordLeast && size <= recordMost { // a bucket ends one byte above its class
			bytes += size * float64(n-frees.Counts[i])
		}
	}
	return bytes
}

func (g *Growth) describe(test string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the live heap grows with every iteration of %s, after garbage collections, and does not stop:\n"+
		"    %.1f bytes (%.1f to %.1f) and %.2f objects (%.2f to %.2f) per iteration, over the last %d iterations,\n"+
		"    in which it grew by %.0f bytes and %.0f objects\n",
		test, g.Bytes, g.BytesLow, g.BytesHigh, g.Objects, g.ObjectsLow, g.ObjectsHigh, g.Iterations, g.total[0], g.total[1])
	for i := range g.Sites {
		g.Sites[i].describe(&b)
	}
	if len(g.Sites) == 0 {
		b.WriteString("    no allocating stack carries it: it stopped with the last iterations, or is in large steps\n")
	}
	return b.String()
}
