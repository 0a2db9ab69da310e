package leakguard_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

// TestGoroutinesCreatedAMinute has nothing but the rate at which goroutines are created, which is noisy.
func TestGoroutinesCreatedAMinute(t *testing.T) {
	t.Parallel()
	const reconciles = 1500 // a minute
	for _, test := range []struct {
		name string
		rate func(second int) float64 // of goroutines a minute
		work func(second int) float64 // of reconciles a minute
		want bool
	}{
		{"a chain of timers more each minute", func(s int) float64 { return 2000 + 2*float64(s) }, func(int) float64 { return reconciles }, true},
		{"nobody counts the reconciles", func(s int) float64 { return 2000 + 2*float64(s) }, func(int) float64 { return 0 }, true},
		{"two for each reconcile, ever more of which come", func(s int) float64 { return 2 * (reconciles + float64(s)) }, func(s int) float64 { return reconciles + float64(s) }, false},
		{"as many all the time", func(int) float64 { return 3000 }, func(int) float64 { return reconciles }, false},
		{"bursts of work", func(s int) float64 { return 3000 + 20000*float64(s/600%2) }, func(s int) float64 { return reconciles * (1 + 10*float64(s/600%2)) }, false},
		{"a step, and flat again", func(s int) float64 { return 3000 + 2000*float64(min(1, s/1800)) }, func(int) float64 { return reconciles }, false},
		{"a few more an hour", func(s int) float64 { return 3000 + float64(s)/60 }, func(int) float64 { return reconciles }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			noise := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not a secret
			done, alarms := 0.0, 0
			w.run(time.Hour, func(s int) {
				done += test.work(s) / 60
				w.load.Reconciles = uint64(done)
				w.readings = []probes.Reading{{
					Probe: "process", Resource: "goroutines created a minute", Covariate: -1, Trap: "S1-01b",
					Count: test.rate(s) * (1 + 0.2*noise.NormFloat64()),
				}}
				alarms += len(w.in(leakguard.StatePending, leakguard.StateFiring))
			})
			if alarms > 0 {
				t.Errorf("it was pending or firing in %d seconds", alarms)
			}
			if !test.want {
				if len(w.last) > 0 {
					t.Errorf("got %v: %s, want nothing", w.last[0].String(), w.last[0].Reason)
				}
				return
			}
			if len(w.last) != 1 {
				t.Fatalf("got %v, want one finding", w.last)
			}
			f := w.last[0]
			if f.State != leakguard.StateListed || f.Rule != "counter" || f.Culprit.Function != "goroutines created a minute" || f.Trap != "S1-01b" || !strings.Contains(f.Advice, "time.AfterFunc") {
				t.Errorf("got %s: %s; %s", f.String(), f.Reason, f.Advice)
			}
			if busy := strings.Contains(f.Reason, "1500 reconciles a minute do not explain it"); busy != (test.work(0) > 0) {
				t.Errorf("the reconciles are in the reason: %t; %s", busy, f.Reason)
			}
		})
	}
}
