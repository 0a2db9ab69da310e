package leakguard //nolint:testpackage // the governor is inside

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func governed(t *testing.T, b Budget, cost time.Duration, findings ...Finding) time.Duration {
	t.Helper()
	o := Options{Budget: b}
	o.setDefaults()
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	var interval time.Duration
	synctest.Test(t, func(*testing.T) {
		g := newGovernor(o.Budget, newTiming(&o))
		for range 10 {
			g.measure(levelProfile, func() int { time.Sleep(cost); return 10 })
			g.adapt(findings, 100)
		}
		interval = g.interval
	})
	return interval
}

func TestGovernorInterval(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		budget   Budget
		cost     time.Duration
		findings []Finding
		want     time.Duration
	}{
		{"cheap", Budget{}, time.Millisecond, nil, 10 * time.Second},
		{"stretched to one percent", Budget{}, 200 * time.Millisecond, nil, 20 * time.Second},
		{"never above the longest", Budget{}, 10 * time.Second, nil, 5 * time.Minute},
		{"no bound", Budget{CPU: -1}, 10 * time.Second, nil, 10 * time.Second},
		{"shorter while something is pending", Budget{}, time.Millisecond, []Finding{{State: StatePending}}, 5 * time.Second},
		{"the budget goes before the pending", Budget{}, 100 * time.Millisecond, []Finding{{State: StatePending}}, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := governed(t, test.budget, test.cost, test.findings...); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestGovernorRefusesLongDumps(t *testing.T) {
	t.Parallel()
	o := Options{}
	o.setDefaults()
	g := newGovernor(o.Budget, newTiming(&o))
	if !g.allowDump(500) {
		t.Error("a dump of 500 goroutines was refused")
	}
	if g.allowDump(100_000) {
		t.Error("a dump of 100,000 goroutines was allowed")
	}
	if got := g.report(); len(got) != 1 || got[0].Skipped != 1 {
		t.Errorf("got %+v, want one skipped dump", got)
	}
}

// A dump that was slow once, on a busy machine, must not end the dumps for ever; one that always is comes ever more seldom.
func TestGovernorTriesSlowDumpsAgain(t *testing.T) {
	t.Parallel()
	const goroutines = 500
	dumps := func(cost func(n int) time.Duration) (at []time.Duration) {
		synctest.Test(t, func(*testing.T) {
			o := Options{}
			o.setDefaults()
			g := newGovernor(o.Budget, newTiming(&o))
			began := time.Now()
			for time.Since(began) < 2*time.Hour {
				if g.allowDump(goroutines) {
					at = append(at, time.Since(began).Truncate(time.Minute))
					g.measureDump(goroutines, func() int { time.Sleep(cost(len(at))); return 1 })
				}
				time.Sleep(10 * time.Second)
			}
		})
		return at
	}
	once := dumps(func(n int) time.Duration {
		if n == 1 {
			return time.Second
		}
		return time.Millisecond
	})
	if len(once) < 100 || once[1] != 2*time.Minute {
		t.Errorf("after one slow dump: got %d more, the first after %v, want the usual ones from 2m on", len(once)-1, once[1:min(2, len(once))])
	}
	always := dumps(func(int) time.Duration { return 50 * time.Millisecond })
	want := []time.Duration{0, 2 * time.Minute, 6 * time.Minute, 14 * time.Minute, 30 * time.Minute, 62 * time.Minute, 94 * time.Minute}
	if diff := cmp.Diff(want, always); diff != "" {
		t.Errorf("dumps that are always slow come at (-want +got):\n%s", diff)
	}
}
