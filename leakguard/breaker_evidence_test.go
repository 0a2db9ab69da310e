package leakguard_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// guarded runs a make-believe process whose controller app has a breaker: each second that app may run, step is called with
// the time since the start and whether app was ever paused. What stands at shortLine ends after five seconds. It gives what the
// breaker did, and how long each pause was.
func (w *world) guarded(d time.Duration, step func(second int, caught bool)) (changes []string, pauses []time.Duration) {
	b := leakguard.NewBreakers(leakguard.Breaker{MaxLeaked: 10})
	b.Runs("works", w.now)
	var since time.Time
	w.run(d, func(s int) {
		w.end(func(g *fake) bool { return g.line == shortLine && w.now.Sub(g.born) > 5*time.Second })
		if s%10 == 0 {
			changes = append(changes, b.Step(w.now, w.last, w.detector)...)
		}
		switch runs := b.Runs("app", w.now); {
		case runs && !since.IsZero():
			pauses, since = append(pauses, w.now.Sub(since)), time.Time{}
			step(s, true)
		case runs:
			step(s, len(changes) > 0)
		case since.IsZero():
			since = w.now
		}
	})
	return changes, pauses
}

// shortLine is the line of work that ends by itself.
const shortLine = 5

// handlers is an account of event handlers of app.
func handlers(n int) probes.Reading {
	return probes.Reading{
		Probe: "informers", Resource: "event handlers", Scope: "app", Count: float64(n), Covariate: -1, Leaked: true,
		Culprit: frame.Frame{Function: mainModule + "/app.(*R).Reconcile", File: "/src/app/reconciler.go", Line: 20},
	}
}

// breakerLeaks are the kinds of evidence that can open a breaker: each call leaks one, every four seconds in which the
// controller runs.
func breakerLeaks() map[string]func(w *world, second int) {
	count := func(w *world, leaked bool) {
		if len(w.readings) == 0 {
			w.readings = []probes.Reading{handlers(0)}
		}
		w.readings[0].Count++
		w.readings[0].Leaked = leaked
	}
	return map[string]func(w *world, second int){
		"goroutines":              func(w *world, s int) { w.start("app", w.reconcile(s%20), "(*R).Reconcile.func1") },
		"goroutines of no object": func(w *world, _ int) { w.start("app", probes.SpanID{}, "(*R).Reconcile.func1") },
		"goroutines of gone objects": func(w *world, s int) {
			g := w.start("app", w.reconcile(1000+s), "(*R).Reconcile.func1")
			w.objects.gone[g.span.Object] = w.now
		},
		"accounts": func(w *world, _ int) { count(w, true) },
		"counts":   func(w *world, _ int) { count(w, false) },
		"hung reconciles": func(w *world, s int) {
			if s%32 == 0 {
				id := w.reconcile(s)
				w.start("app", id, "(*R).Reconcile").wait = "IO wait"
				w.inFlight = append(w.inFlight, probes.Open{Scope: "app", ID: id, Since: w.now})
			}
		},
	}
}

// TestBreakerOfWhatLeakedOnce leaks until the breaker opens and never again: one pause and one trial are enough.
func TestBreakerOfWhatLeakedOnce(t *testing.T) {
	t.Parallel()
	for name, leak := range breakerLeaks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			changes, pauses := w.guarded(2*time.Hour, func(s int, caught bool) {
				if s%4 == 0 && !caught {
					leak(w, s)
				}
			})
			if want := []string{"app open", "app trial", "app closed"}; !slices.Equal(changes, want) {
				t.Errorf("got %q with pauses of %v, want %q", changes, pauses, want)
			}
		})
	}
}

// TestBreakerOfWhatLeaksOn leaks whenever the controller runs: each pause is twice as long as the one before.
func TestBreakerOfWhatLeaksOn(t *testing.T) {
	t.Parallel()
	for name, leak := range breakerLeaks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			changes, pauses := w.guarded(3*time.Hour, func(s int, _ bool) {
				if s%4 == 0 {
					leak(w, s)
				}
			})
			if len(pauses) < 3 {
				t.Fatalf("got %q with pauses of %v, want three and more", changes, pauses)
			}
			for i, p := range pauses[1:] {
				if want := min(2*pauses[i], 16*leakguard.DefaultBreakerPause); (p - want).Abs() > 10*time.Second {
					t.Errorf("got pauses of %v, want each twice as long as the one before, up to sixteen times the first", pauses)
					break
				}
			}
		})
	}
}

// TestBreakerOfShortWork has, beside what leaked once, work at the same place that ends after five seconds: a few of it are
// alive at each look.
func TestBreakerOfShortWork(t *testing.T) {
	t.Parallel()
	for name, span := range map[string]func(w *world, s int) probes.SpanID{
		"of objects":   func(w *world, s int) probes.SpanID { return w.reconcile(s % 20) },
		"of no object": func(*world, int) probes.SpanID { return probes.SpanID{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			changes, pauses := w.guarded(2*time.Hour, func(s int, caught bool) {
				if !caught {
					w.start("app", span(w, s), "(*R).Reconcile.func1")
				} else {
					w.start("app", span(w, s), "(*R).Reconcile.func1").line = shortLine
				}
			})
			if want := []string{"app open", "app trial", "app closed"}; !slices.Equal(changes, want) {
				t.Errorf("got %q with pauses of %v, want %q", changes, pauses, want)
			}
		})
	}
}
