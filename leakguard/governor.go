package leakguard

import (
	"slices"
	"strings"
	"time"
)

// The sampling levels.
const (
	levelMetrics = "metrics"
	levelProfile = "profile"
	levelDump    = "dump"
	levelHeap    = "heap"
	levelProof   = "proof"
)

// pausePerGoroutine is what a full dump is taken to stop the world for each goroutine before one has been measured:
// between the 3 µs of tiny stacks and the 40 µs of a loaded machine.
const pausePerGoroutine = 8 * time.Microsecond

// governor keeps the guard's own cost within Options.Budget: it measures what each level costs, stretches the interval,
// and refuses dumps that would stop the world for too long.
type governor struct {
	budget   Budget
	timing   timing
	interval time.Duration // now in force
	levels   map[string]*LevelReport
	tickCost time.Duration    // of this tick's periodic levels so far
	costs    [5]time.Duration // of the last ticks, to take the median of: one slow tick on a busy machine is not our cost
	ticks    int
	pause    time.Duration // for each goroutine, of the last dump
	dumpAt   time.Time     // when the last dump was taken
	dumpCost time.Duration // what it cost
	slow     int           // dumps in a row that took longer than the budget's pause
	calm     int           // ticks in a row without anything pending
}

func newGovernor(b Budget, t timing) governor {
	return governor{budget: b, timing: t, interval: t.interval, levels: map[string]*LevelReport{}, pause: pausePerGoroutine}
}

// measure runs one sample of a level and books its cost; sample gives the bytes that it read.
func (g *governor) measure(level string, sample func() (read int)) {
	l := g.level(level)
	began := time.Now()
	n := sample()
	cost := time.Since(began)
	l.Taken++
	l.Seconds += cost.Seconds()
	l.Bytes += uint64(max(n, 0)) //nolint:gosec // not negative
	if level == levelMetrics || level == levelProfile {
		g.tickCost += cost
	}
}

// allowDump reports whether a dump of so many goroutines fits the budget of pause and, after the one before, that of CPU; it
// counts the dump as skipped if not.
func (g *governor) allowDump(goroutines int) bool {
	short := g.short(g.pause, goroutines) || g.slow > 0 && g.short(pausePerGoroutine, goroutines) && time.Since(g.dumpAt) >= g.retry()
	cheap := g.dumpAt.IsZero() || time.Since(g.dumpAt) >= g.spread(g.dumpCost)
	if short && cheap {
		return true
	}
	g.level(levelDump).Skipped++
	return false
}

// short reports whether a dump of so many goroutines stops the world for no longer than it may.
func (g *governor) short(each time.Duration, goroutines int) bool {
	return g.budget.Pause < 0 || each*time.Duration(goroutines) <= g.budget.Pause
}

// maxSlow bounds how often the time until another try doubles.
const maxSlow = 5

// retry is how long after a dump that was too slow another one is tried where one should fit: a single one on a busy machine
// says little of the next, and without any the growth of goroutines is never decided. It doubles each time.
func (g *governor) retry() time.Duration {
	return g.timing.dumpRetry << (min(g.slow, maxSlow) - 1)
}

// measureDump takes a dump and learns from its pause.
func (g *governor) measureDump(goroutines int, dump func() (read int)) {
	began := time.Now()
	g.measure(levelDump, dump)
	g.dumpAt, g.dumpCost = time.Now(), time.Since(began)
	if g.slow++; g.budget.Pause < 0 || g.dumpCost <= g.budget.Pause {
		g.slow = 0
	}
	if goroutines > 0 { // slower by half of it, faster at once
		each := g.dumpCost / time.Duration(goroutines)
		g.pause = min(each, (g.pause+each)/2)
	}
}

// spread is over how long a cost must be spread to stay within the CPU budget.
func (g *governor) spread(cost time.Duration) time.Duration {
	if g.budget.CPU <= 0 {
		return 0
	}
	return time.Duration(float64(cost) * g.timing.scale / g.budget.CPU)
}

// every is how often a level may be sampled that should be every so often: less when it costs more.
func (g *governor) every(level string, often time.Duration) time.Duration {
	l := g.levels[level]
	if l == nil || l.Taken == 0 {
		return often
	}
	return max(often, g.spread(time.Duration(l.Seconds/float64(l.Taken)*float64(time.Second))))
}

// maxCalm is how many quiet ticks stretch the interval to twice the configured one, while the process is huge.
const (
	maxCalm        = 30
	hugeGoroutines = 20_000
)

// adapt sets the next interval: the configured one; the shortest while something is pending; longer when the process is
// huge and calm; and always long enough for the cost of a tick to stay within the CPU budget.
func (g *governor) adapt(findings []Finding, goroutines int) {
	g.costs[g.ticks%len(g.costs)], g.tickCost = g.tickCost, 0
	g.ticks++
	pending := slices.ContainsFunc(findings, func(f Finding) bool { return f.State == StatePending })
	if g.calm++; pending {
		g.calm = 0
	}
	want := g.timing.interval
	switch {
	case pending:
		want = min(want, max(g.timing.minInterval, want/2))
	case g.calm > maxCalm && goroutines > hugeGoroutines:
		want *= 2
	}
	want = max(want, g.spread(g.usualCost()))
	g.interval = min(want, g.timing.maxInterval)
}

// usualCost is the median cost of the last ticks.
func (g *governor) usualCost() time.Duration {
	costs := slices.Clone(g.costs[:min(g.ticks, len(g.costs))])
	slices.Sort(costs)
	return costs[len(costs)/2]
}

// report gives the cost of each level, ordered by name.
func (g *governor) report() []LevelReport {
	out := make([]LevelReport, 0, len(g.levels))
	for _, l := range g.levels {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b LevelReport) int { return strings.Compare(a.Level, b.Level) })
	return out
}

func (g *governor) level(name string) *LevelReport {
	l := g.levels[name]
	if l == nil {
		l = &LevelReport{Level: name}
		g.levels[name] = l
	}
	return l
}
