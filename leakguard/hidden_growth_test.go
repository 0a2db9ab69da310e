package leakguard_test

import (
	"testing"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

// TestConnectionsThatReconcilesLeave has goroutines that belong to the process and carry a reconcile's label.
func TestConnectionsThatReconcilesLeave(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, root string
		every, end int // seconds between two, and until they have ended
		fires      bool
	}{
		{"a transport for each reconcile", "net/http.(*persistConn).writeLoop", 10, 0, true},
		{"a context of one's own for each reconcile", "context.(*cancelCtx).propagateCancel.func2", 10, 0, true},
		{"connections that end after 90 seconds", "net/http.(*persistConn).writeLoop", 10, 90, false},
		{"a pool that is full", "net/http.(*persistConn).writeLoop", 0, 0, false},
		{"the parts of informers, which are counted elsewhere", "k8s.io/client-go/tools/cache.(*Reflector).startResync", 10, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.run(20*time.Minute, func(s int) {
				switch {
				case test.every == 0 && s == 30:
					for range 8 {
						w.start("app", w.reconcile(1), test.root).full = true
					}
				case test.every > 0 && s%test.every == 5:
					w.start("app", w.reconcile(1), test.root).full = true
				}
				w.end(func(g *fake) bool {
					return test.end > 0 && w.now.Sub(g.born) >= time.Duration(test.end)*time.Second
				})
			})
			if !test.fires {
				w.wantSilence()
				return
			}
			if f := w.wantFiring("growth"); f.Controller != "app" || f.Culprit.Function != test.root {
				t.Errorf("got %s, want controller app and %s", f.String(), test.root)
			}
		})
	}
}

// TestHeapGrowthIsNamedAllTheTime hides the site now and then, as chance does, and looks for a finding without a name.
func TestHeapGrowthIsNamedAllTheTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heaps = func() []*memstats.Heap {
		if w.now.Minute()%10 == 0 {
			return heapsOf(0)
		}
		return heapsOf(20e6)
	}
	named := false
	w.run(2*time.Hour, func(s int) {
		w.memory.Time, w.memory.HeapLiveBytes = w.now, 50<<20+uint64(s)*(1<<20)/60 //nolint:gosec // not negative
		w.memory.NumGC++
		for _, f := range w.last {
			named = named || f.Culprit.Function == mainModule+"/app.(*R).remember"
			if f.Culprit.Function == "live heap" {
				t.Fatalf("got %s after %d seconds", f.String(), s)
			}
		}
	})
	if !named {
		t.Error("the site was never named")
	}
}
