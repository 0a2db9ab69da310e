package memstats_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

// guard watches one simulated operator as leakguard does: goroutines in a compact series, live heap after GC in a
// full one, both with the number of objects and the load as covariates.
type guard struct {
	goroutines, live, objects, load, loadFull, objectsFull, alloc, cycles *memstats.Series
	counts, bytes, garbage                                                *memstats.Judge
	gc                                                                    collector
}

// collector is a garbage collector: the live heap is known only when a cycle ends, and a cycle ends when enough was
// allocated.
type collector struct {
	gogc      float64 // percent
	limit     float64 // GOMEMLIMIT, 0 for none
	rate      float64 // bytes allocated a second
	live      float64 // after the last cycle
	allocated float64 // since then
	cycles    float64
	held      float64 // what the heap held at the last step
	idle      int
	jitter    *rand.Rand
}

func (c *collector) step(live float64) {
	c.allocated += c.rate*tick.Seconds()*(0.5+c.jitter.Float64()) + max(0, live-c.held)
	c.held = live
	room := max(c.live, 4*mib) * c.gogc / 100
	if c.limit > 0 {
		room = max(mib, min(room, c.limit-c.live))
	}
	const forced = 12 // ticks: the runtime collects when there was no cycle for two minutes
	if c.idle++; c.cycles == 0 || c.allocated >= room || c.idle >= forced {
		c.live, c.cycles, c.idle = live, c.cycles+max(1, math.Floor(c.allocated/room)), 0
		if c.allocated = c.allocated - room; c.allocated < 0 {
			c.allocated = 0 // forced: everything is swept
		}
		c.allocated = math.Mod(c.allocated, room)
	}
}

func newGuard(gc collector) *guard {
	compact, full := memstats.Compact(), memstats.Full()
	return &guard{
		goroutines: memstats.NewSeries(compact), objects: memstats.NewSeries(compact), load: memstats.NewSeries(compact),
		live: memstats.NewSeries(full), loadFull: memstats.NewSeries(full), objectsFull: memstats.NewSeries(full),
		alloc: memstats.NewSeries(full), cycles: memstats.NewSeries(full),
		counts: memstats.NewJudge(memstats.Thresholds{}), bytes: memstats.NewJudge(memstats.ByteThresholds()),
		garbage: memstats.NewJudge(memstats.Thresholds{MinRise: 6 << 20, Garbage: true, Unit: "bytes"}), gc: gc,
	}
}

func (g *guard) add(at time.Duration, q reading) {
	if q.restart {
		for _, s := range []*memstats.Series{g.goroutines, g.objects, g.load, g.live, g.loadFull, g.objectsFull, g.alloc, g.cycles} {
			s.Reset()
		}
		g.gc.cycles, g.gc.live, g.gc.allocated = 0, 0, 0
	}
	g.gc.step(q.live)
	now := epoch.Add(at)
	g.goroutines.Add(now, q.goroutines)
	g.objects.Add(now, q.objects)
	g.load.Add(now, q.load)
	g.live.Add(now, g.gc.live)
	g.loadFull.Add(now, q.load)
	g.objectsFull.Add(now, q.objects)
	g.alloc.Add(now, g.gc.live+g.gc.allocated)
	g.cycles.Add(now, g.gc.cycles)
}

// findings gives the verdicts that would alarm, by series.
func (g *guard) findings() (found []string) {
	check := func(name string, v memstats.Verdict) {
		if v.Outcome == memstats.Leak {
			found = append(found, name+": "+v.Reason)
		}
	}
	check("goroutines", g.counts.Judge(g.goroutines, memstats.Covariate{Name: "objects", Series: g.objects}, memstats.Covariate{Name: "load", Series: g.load}))
	full := []memstats.Covariate{
		{Name: "objects", Series: g.objectsFull}, {Name: "load", Series: g.loadFull}, {Name: "cycles", Kind: memstats.Cycles, Series: g.cycles},
	}
	check("live heap", g.bytes.Judge(g.live, full...))
	check("heap", g.garbage.Judge(g.alloc, full...))
	return found
}

// collectorOf gives the GC settings that the runs go through.
func collectorOf(r *rand.Rand, i int) collector {
	c := []collector{{gogc: 100}, {gogc: 50}, {gogc: 400}, {gogc: 1000, limit: 700 * mib}}[i%4]
	c.jitter = rand.New(rand.NewPCG(r.Uint64(), 7))
	c.rate = math.Exp(math.Log(64<<10) + r.Float64()*math.Log(400)) // 64 KiB/s to 25 MiB/s
	return c
}

// source gives the random source of a run: another seed is another set of runs.
func source(seed uint64, name string, run int) *rand.Rand {
	h := fnv.New64a()
	h.Write(fmt.Appendf(nil, "%s/%d", name, run))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// Seeds: tuning was done on the first only.
const (
	tuningSeed = 1
	heldSeed   = 20260301
)

func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("LEAKGUARD_SEED")
	if text == "" {
		return heldSeed
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// full says whether the long mode was asked for.
func full() bool { return os.Getenv("LEAKGUARD_ACCURACY") == "full" }

// parallel runs f for 0..n-1 on all processors.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	work := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range work {
				f(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
}

// TestAccuracyBenign wants no finding in healthy operators: 10,000 days with LEAKGUARD_ACCURACY=full, else some 150.
func TestAccuracyBenign(t *testing.T) {
	shapes := loadShapes()
	if len(shapes) < 30 {
		t.Fatalf("%d shapes, want 30 or more", len(shapes))
	}
	runs, days := 1, 4
	if full() {
		days = 7
		runs = (10_000 + days*len(shapes) - 1) / (days * len(shapes))
	}
	if v, err := strconv.Atoi(os.Getenv("LEAKGUARD_RUNS")); err == nil {
		runs = v
	}
	var mu sync.Mutex
	count := map[string]int{}
	s := seed(t)
	parallel(runs*len(shapes), func(i int) {
		shape, run := shapes[i%len(shapes)], i/len(shapes)
		r := source(s, shape.name, run)
		if at, found := falseFinding(r, shape, run, time.Duration(days)*24*time.Hour); found != "" {
			mu.Lock()
			defer mu.Unlock()
			if count[shape.name]++; count[shape.name] <= 2 {
				t.Errorf("%s, run %d, after %v: %s", shape.name, run, at, found)
			}
		}
	})
	total := 0
	for name, n := range count {
		total += n
		t.Logf("%-45s %d of %d runs with a false finding", name, n, runs)
	}
	t.Logf("%d shapes, %d days in all, %d false findings, seed %d", len(shapes), runs*days*len(shapes), total, s)
}

// falseFinding runs a healthy operator until the first finding.
func falseFinding(r *rand.Rand, shape loadShape, run int, length time.Duration) (time.Duration, string) {
	g := newGuard(collectorOf(r, run))
	next := shape.make(r)
	for at := time.Duration(0); at < length; at += tick {
		g.add(at, next(at))
		if at%(5*time.Minute) != 0 {
			continue
		}
		if found := g.findings(); len(found) > 0 {
			return at, found[0]
		}
	}
	return 0, ""
}

// leakRate is one row of the table of delays.
type leakRate struct {
	name       string
	goroutines float64       // an hour
	bytes      float64       // a second
	within     time.Duration // for the steady shapes; 0 when there is no bar
	least      time.Duration // how long to look
}

func leakRates() []leakRate {
	return []leakRate{
		{"1 goroutine an hour", 1, 0, 24 * time.Hour, 60 * time.Hour},
		{"6 goroutines an hour", 6, 0, 0, 24 * time.Hour},
		{"1 goroutine a minute", 60, 0, 30 * time.Minute, 24 * time.Hour},
		{"10 goroutines a minute", 600, 0, 30 * time.Minute, 24 * time.Hour},
		{"1 KiB/s of heap", 0, 1 << 10, 6 * time.Hour, 48 * time.Hour},
		{"10 KiB/s of heap", 0, 10 << 10, 6 * time.Hour, 24 * time.Hour},
		{"100 KiB/s of heap", 0, 100 << 10, 30 * time.Minute, 24 * time.Hour},
	}
}

// every is how often a verdict is asked for: fast leaks are looked for more often, to measure their delay, not to
// find them.
func (r leakRate) every() time.Duration { return (r.least / 1440).Truncate(tick) + tick }

// delay gives how long after its start a leak on top of a shape is found, by a series that it moves.
func delay(r *rand.Rand, shape loadShape, run int, rate leakRate) (time.Duration, bool) {
	g := newGuard(collectorOf(r, run))
	next := shape.make(r)
	begin := between(r, 0, 26*time.Hour).Truncate(tick)
	if run%3 == 0 {
		begin = 0
	}
	end := begin + rate.least
	for at := time.Duration(0); at < end; at += tick {
		q := next(at)
		if q.restart {
			begin = at // what leaked is gone
		}
		leaked := max(0, (at - begin).Hours())
		q.goroutines += math.Floor(leaked * rate.goroutines)
		q.live += leaked * 3600 * rate.bytes
		g.add(at, q)
		if at >= begin && at%rate.every() == 0 {
			if found := g.findings(); len(found) > 0 {
				return at - begin, true
			}
		}
	}
	return 0, false
}

// TestAccuracyDelay prints the table of detection delays of the package documentation and checks the bars.
func TestAccuracyDelay(t *testing.T) {
	shapes := loadShapes()
	runs := 1
	if full() {
		runs = 6
	}
	rates := leakRates()
	type result struct {
		rate, shape int
		delay       time.Duration
		found       bool
	}
	results := make([]result, len(rates)*len(shapes)*runs)
	s := seed(t)
	parallel(len(results), func(i int) {
		k, shape, run := i%len(rates), i/len(rates)%len(shapes), i/len(rates)/len(shapes)
		if !full() && (shape+k)%3 != 0 && !steadyShape(shapes[shape].name) && os.Getenv("LEAKGUARD_RUNS") == "" {
			results[i] = result{rate: -1}
			return
		}
		d, ok := delay(source(s, shapes[shape].name+rates[k].name, run), shapes[shape], run, rates[k])
		results[i] = result{k, shape, d, ok}
	})
	t.Logf("%-24s %-32s %s", "", "steady: median, longest", "all shapes: median, 90 %, longest, missed")
	for k, rate := range rates {
		var steady, all []time.Duration
		missed := 0
		for _, r := range results {
			if r.rate != k {
				continue
			}
			if !r.found {
				missed++
				r.delay = rate.least + 1
			} else {
				all = append(all, r.delay)
			}
			if steadyShape(shapes[r.shape].name) {
				steady = append(steady, r.delay)
				if rate.within > 0 && r.delay > rate.within {
					t.Errorf("%s on %q: found %v after %v, want within %v", rate.name, shapes[r.shape].name, r.found, r.delay, rate.within)
				}
			}
		}
		slices.SortFunc(steady, cmp.Compare)
		slices.SortFunc(all, cmp.Compare)
		if len(all) == 0 || len(steady) == 0 {
			t.Fatalf("%s: never found", rate.name)
		}
		t.Logf("%-24s %-32s %v, %v, %v, %d of %d", rate.name, minutes(steady[len(steady)/2])+", "+minutes(steady[len(steady)-1]),
			minutes(all[len(all)/2]), minutes(all[len(all)*9/10]), minutes(all[len(all)-1]), missed, missed+len(all))
	}
}

// steadyShape names the shapes whose floors do not move by themselves: there the bars hold in every run.
func steadyShape(name string) bool {
	return slices.Contains([]string{"flat", "small noise", "large garbage noise", "worker pool, idle and busy", "burst of 5,000 for 30 s"}, name)
}

// minutes prints a duration as "4 h 20 min".
func minutes(d time.Duration) string {
	d = d.Round(time.Minute)
	if d < time.Hour {
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}
