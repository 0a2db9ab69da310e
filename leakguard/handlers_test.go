package leakguard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

// TestWorkOfHandlersThatEndsIsANotice starts two seconds of work for each event; the label is shared by the events between
// two ticks.
func TestWorkOfHandlersThatEndsIsANotice(t *testing.T) {
	t.Parallel()
	const handlers = "handlers of v1.Pod informer"
	for _, test := range []struct {
		name  string
		lives time.Duration
		tier  leakguard.Tier // empty for nothing
	}{
		{"two seconds", 2 * time.Second, leakguard.TierNotice},
		{"at once", 0, ""},
		{"for ever", time.Hour, leakguard.TierLikely},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var epoch probes.SpanID
			w.run(10*time.Minute, func(s int) {
				w.end(func(g *fake) bool { return w.now.Sub(g.born) >= test.lives })
				if s%10 == 0 {
					w.seq++
					epoch = probes.SpanID{Seq: w.seq}
				}
				w.start(handlers, epoch, "process")
				w.start(handlers, epoch, "process")
				if test.lives == 0 {
					w.end(func(*fake) bool { return true })
				}
			})
			if test.tier == "" {
				if len(w.last) > 0 {
					t.Errorf("got %v, want nothing", w.last)
				}
				return
			}
			if len(w.last) != 1 || w.last[0].Tier != test.tier || w.last[0].Controller != handlers {
				t.Fatalf("got %v, want one finding of tier %s", w.last, test.tier)
			}
			if test.tier == leakguard.TierNotice && !strings.Contains(w.last[0].Reason, "outlived the calls that started them") {
				t.Errorf("got reason %q", w.last[0].Reason)
			}
		})
	}
}

// TestSpanThatSharesItsLabel ends between the profile and the look at what is in flight: its own goroutine is no work that
// it left behind.
func TestSpanThatSharesItsLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(10*time.Minute, func(s int) {
		w.end(func(*fake) bool { return true })
		if s%10 == 9 {
			w.seq++
			g := w.start("handlers of v1.Pod informer", probes.SpanID{Seq: w.seq}, "github.com/leakguard/leakguard/probes/clientgo.(*handler).OnAdd")
			g.full = true
		}
	})
	if len(w.last) > 0 {
		t.Errorf("got %v, want nothing", w.last)
	}
}

// TestHandlerInFlightIsNoReconcile has a handler that does not return, which a probe tells about.
func TestHandlerInFlightIsNoReconcile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := probes.SpanID{Seq: 7}
	w.start("handlers of v1.Pod informer", id, "block")
	w.inFlight = []probes.Open{{Scope: "handlers of v1.Pod informer", ID: id, Since: w.now}}
	w.run(40*time.Minute, func(int) {})
	if len(w.last) > 0 {
		t.Errorf("got %v, want nothing", w.last)
	}
}
