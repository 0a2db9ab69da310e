package leakguard_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/stackmatch"
)

const mib = 1 << 20

// growHeap lets the live heap grow by so many MiB a minute.
func (w *world) growHeap(d time.Duration, perMinute float64, limit uint64) {
	begin := float64(max(w.memory.HeapLiveBytes, 50*mib))
	w.run(d, func(s int) {
		w.memory.Time, w.memory.LimitBytes = w.now, limit
		w.memory.HeapLiveBytes = uint64(begin + perMinute*mib*float64(s)/60)
		w.memory.ResidentBytes = w.memory.HeapLiveBytes + 20*mib
		w.memory.NumGC++
	})
}

// finely gives the profiles of heapsOf with eight times as many samples, enough to believe in little.
func finely(grow float64) []*memstats.Heap {
	list := heapsOf(grow)
	for _, h := range list {
		h.Sites[0].Sampled *= 8
	}
	return list
}

// TestSmallHeapGrowthIsListed has growth that is certain, and not yet worth an alarm.
func TestSmallHeapGrowthIsListed(t *testing.T) {
	t.Parallel()
	const slow, fast = 0.3, 1 // MiB a minute
	site := mainModule + "/app.(*R).remember"
	for _, test := range []struct {
		name      string
		heaps     func() []*memstats.Heap // nil when nobody knows a site
		perMinute float64
		after     time.Duration
		limit     uint64
		state     leakguard.State // empty for nothing at all
		culprit   string
		reason    string
	}{
		{"a site that gained 9 MiB", func() []*memstats.Heap { return finely(3 * mib) }, slow, 45 * time.Minute, 0, leakguard.StateListed, site, "listed: 9 MiB so far, an alarm from 16 MiB on"},
		{"one that gained 18 MiB", func() []*memstats.Heap { return finely(6 * mib) }, fast, 45 * time.Minute, 0, leakguard.StateFiring, site, "growth of the heap is allocated here"},
		{"an estimate above what the whole heap gained", func() []*memstats.Heap { return finely(60 * mib) }, slow, 45 * time.Minute, 0, leakguard.StateListed, site, "an alarm from 16 MiB on"},
		{"a limit that is reached within a day", func() []*memstats.Heap { return finely(3 * mib) }, slow, 45 * time.Minute, 256 * mib, leakguard.StateFiring, site, "memory limit is reached"},
		{"a limit that is far", func() []*memstats.Heap { return finely(3 * mib) }, slow, 45 * time.Minute, 1 << 30, leakguard.StateListed, site, "an alarm from 16 MiB on; "},
		{"a sixteenth of a small limit that is far", func() []*memstats.Heap { return finely(4 * mib) }, 0.028, 6*time.Hour + 30*time.Minute, 128 * mib, leakguard.StateFiring, site, "growth of the heap is allocated here"},
		{"as little without a limit", func() []*memstats.Heap { return finely(4 * mib) }, 0.028, 6*time.Hour + 30*time.Minute, 0, leakguard.StateListed, site, "an alarm from 16 MiB on"},
		{"no site, so far", nil, slow, 45 * time.Minute, 0, leakguard.StateListed, "live heap", "an alarm from 16 MiB on"},
		{"no site, in the end", nil, slow, 2 * time.Hour, 0, leakguard.StateFiring, "live heap", "live heap after a collection"},
		{"a heap that does not grow", func() []*memstats.Heap { return finely(3 * mib) }, 0, 2 * time.Hour, 0, "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.heaps = test.heaps
			w.growHeap(test.after, test.perMinute, test.limit)
			if test.state == "" {
				if len(w.last) > 0 {
					t.Errorf("got %v, want nothing", w.last)
				}
				return
			}
			if len(w.last) != 1 {
				t.Fatalf("got %v, want one finding", w.last)
			}
			f := w.last[0]
			if f.State != test.state || f.Rule != "heap-growth" || f.Culprit.Function != test.culprit || !strings.Contains(f.Reason, test.reason) {
				t.Errorf("got %s: %s, want %s in %s with %q", f.String(), f.Reason, test.state, test.culprit, test.reason)
			}
			if (f.State == leakguard.StateListed) != (f.Tier == leakguard.TierListed) {
				t.Errorf("got tier %s of state %s", f.Tier, f.State)
			}
			want := stackmatch.SeverityInfo
			if f.State == leakguard.StateFiring {
				if want = stackmatch.SeverityWarning; test.reason == "memory limit is reached" {
					want = stackmatch.SeverityCritical
				}
			}
			if f.Severity != want {
				t.Errorf("got severity %v, want %v", f.Severity, want)
			}
		})
	}
}

// TestHeapGrowthDoesNotFlap moves a site's gain across the allowance again and again, then lets it shrink, stop and come again.
func TestHeapGrowthDoesNotFlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var states []leakguard.State
	gain := func() float64 { return 3 * mib }
	w.heaps = func() []*memstats.Heap {
		for _, f := range w.last { // those of the tick before
			if len(states) == 0 || states[len(states)-1] != f.State {
				states = append(states, f.State)
			}
		}
		return finely(gain())
	}
	want := func(after string, list ...leakguard.State) {
		t.Helper()
		if !slices.Equal(states, list) {
			t.Fatalf("%s: got states %v, want %v", after, states, list)
		}
	}
	w.growHeap(45*time.Minute, 0.3, 0)
	want("9 MiB", leakguard.StateListed)
	gain = func() float64 { return float64(4+2*(w.now.Minute()%2)) * mib } // 12 or 18 MiB
	w.growHeap(time.Hour, 0.5, 0)
	want("12 and 18 MiB by turns", leakguard.StateListed, leakguard.StateFiring)
	gain = func() float64 { return 2 * mib }
	w.growHeap(30*time.Minute, 0.5, 0)
	want("6 MiB again", leakguard.StateListed, leakguard.StateFiring)
	if f := w.wantFiring("heap-growth"); f.Count != 6*mib {
		t.Errorf("got count %d, want that of now", f.Count)
	}
	w.growHeap(45*time.Minute, 0, 0)
	if got := w.in(leakguard.StateResolved); len(got) != 1 || len(w.last) != 1 {
		t.Fatalf("no growth any more: got %v, want it resolved", w.last)
	}
	states = nil
	w.growHeap(45*time.Minute, 0.5, 0)
	for _, s := range states {
		if s != leakguard.StateResolved && s != leakguard.StateListed {
			t.Errorf("6 MiB after it resolved: got %s, want no alarm", s)
		}
	}
	if got := w.in(leakguard.StateListed); len(got) != 1 {
		t.Errorf("6 MiB after it resolved: got %v, want it listed", w.last)
	}
}
