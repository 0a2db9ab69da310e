package leakguard_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

func (w *world) wantFiring(rule string) leakguard.Finding {
	w.t.Helper()
	got := w.in(leakguard.StateFiring)
	if len(got) != 1 || got[0].Rule != rule {
		w.t.Fatalf("got %v, want one firing finding of rule %s", w.last, rule)
	}
	return got[0]
}

func TestLockWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		w.start("app", w.reconcile(1), "(*Cache).Refresh").wait = "sync.Mutex.Lock"
	}
	for _, g := range w.living {
		w.inFlight = append(w.inFlight, probes.Open{Scope: "app", ID: g.span, Since: w.now})
	}
	w.run(5*time.Minute, func(int) {})
	if f := w.wantFiring("lock-wait"); f.Count != 3 || f.Controller != "app" || w.dumps == 0 {
		t.Errorf("got %+v after %d dumps", f, w.dumps)
	}
}

// TestContentionIsNoLockWait always has somebody at the lock, each time another goroutine.
func TestContentionIsNoLockWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(20*time.Minute, func(s int) {
		if s%5 == 0 {
			w.end(func(*fake) bool { return true })
			w.start("", probes.SpanID{}, "(*Cache).Refresh").wait = "sync.Mutex.Lock"
		}
	})
	w.wantSilence()
	if w.dumps == 0 {
		t.Error("no dump was asked: the test shows nothing")
	}
}

func TestWaitsForever(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(6*time.Minute, func(s int) {
		if s%30 == 15 && s < 150 {
			w.start("", probes.SpanID{}, "Block").wait = "select (no cases)"
		}
	})
	if f := w.wantFiring("waits-forever"); f.Count != 5 {
		t.Errorf("got count %d, want 5", f.Count)
	}
}

func TestWaitsForeverOnPurpose(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"main.main", "example.com/op/app.init.0", "sigs.k8s.io/controller-runtime/pkg/manager.park"} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.run(6*time.Minute, func(s int) {
				if s%30 == 15 && s < 150 {
					g := w.start("", probes.SpanID{}, function)
					g.full, g.wait = true, "select (no cases)"
				}
			})
			w.wantSilence()
		})
	}
	w := newWorld(t)
	w.run(6*time.Minute, func(s int) {
		if s == 20 {
			w.start("", probes.SpanID{}, "Block").wait = "select (no cases)"
		}
	})
	if got := w.in(leakguard.StateListed); len(got) != 1 || len(w.last) != 1 {
		t.Errorf("a single one: got %v, want it listed", w.last)
	}
}

// TestReadingsThatGrow follows counts of a probe that are no leak by themselves.
func TestReadingsThatGrow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		count     func(second int) float64
		covariate func(second int) float64
		fires     bool
	}{
		{"grows alone", func(s int) float64 { return float64(s / 5) }, nil, true},
		{"grows with what explains it", func(s int) float64 { return float64(s / 5) }, func(s int) float64 { return float64(s / 5) }, false},
		{"fills up and stays", func(s int) float64 { return float64(min(s, 300)) }, nil, false},
		{"is only listed", func(s int) float64 { return float64(s / 5) }, nil, false},
		{"is only shown", func(s int) float64 { return float64(s / 5) }, nil, false},
		{"comes and goes", func(s int) float64 { return float64(s % 600) }, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.run(90*time.Minute, func(s int) {
				r := probes.Reading{Probe: "container", Resource: "podCache", Count: test.count(s), Covariate: -1}
				r.Shown = test.name == "is only shown"
				if test.name == "is only listed" {
					r.Resource = "goroutines created a minute"
				}
				if test.covariate != nil {
					r.Covariate = test.covariate(s)
				}
				w.readings = []probes.Reading{r}
			})
			got := w.in(leakguard.StateFiring)
			if (len(got) == 1) != test.fires {
				t.Errorf("got %v, want firing: %t", w.last, test.fires)
			}
		})
	}
}

// TestReadingThatIsListed has a count that its probe finds worth a line. It alarms when the probe says more than that.
func TestReadingThatIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := probes.Reading{Probe: "http", Resource: "several: watch pods", Count: 2, Covariate: 1, Listed: true, Reason: "2 watches"}
	w.readings = []probes.Reading{r}
	w.run(30*time.Minute, func(int) {})
	w.wantSilence()
	if got := w.in(leakguard.StateListed); len(got) != 1 || got[0].Tier != leakguard.TierListed || got[0].Count != 2 || got[0].Reason != r.Reason {
		t.Errorf("got %v, want the count listed", w.last)
	}
	r.Count, r.Leaked = 4, true
	w.readings = []probes.Reading{r}
	w.run(time.Minute, func(int) {})
	if f := w.wantFiring("accounting"); f.Tier != leakguard.TierProven || f.Count != 4 {
		t.Errorf("got %v, want it proven", &f)
	}
}

// TestTransportsAreOneFinding has two probes that see a client be made in each reconcile, and one that sees it connect.
func TestTransportsAreOneFinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := frame.Frame{Function: mainModule + "/app.(*R).Reconcile", File: "/src/app/r.go", Line: 7}
	w.readings = []probes.Reading{
		{Probe: probes.TransportName, Resource: "HTTP transports made by reconciles and the like", Scope: "app", Count: 40, Covariate: -1, Bounded: true, Culprit: at},
		{Probe: clientgo.TransportCacheName, Resource: "client transports of one place", Scope: "app", Count: 41, Covariate: -1, Bounded: true, Culprit: at},
		{Probe: probes.TransportName, Resource: "connections made call by call", Scope: "app", Count: 42, Covariate: -1, Listed: true, Shown: true, Culprit: at},
		{Probe: probes.TransportName, Resource: "connections made", Scope: "app", Count: 42, Covariate: -1, Shown: true},
	}
	w.run(10*time.Minute, func(int) {})
	w.wantSilence()
	if len(w.last) != 1 || w.last[0].State != leakguard.StateListed || w.last[0].Controller != "app" {
		t.Errorf("got %v, want one finding, listed", w.last)
	}
}

// heapsOf gives four profiles in which one site grows by the given bytes each.
func heapsOf(grow float64) []*memstats.Heap {
	site := []frame.Frame{
		{Function: "maps.grow", File: "/go/src/maps/map.go", Line: 1},
		{Function: mainModule + "/app.(*R).remember", File: "/src/app/cache.go", Line: 12},
	}
	var list []*memstats.Heap
	for i := range 4 {
		bytes := 10e6 + float64(i)*grow
		list = append(list, &memstats.Heap{
			Time: time.Unix(1_700_000_000+int64(i)*300, 0), Rate: 512 << 10,
			Sites: []memstats.Site{{Stack: site, InuseBytes: bytes, InuseObjects: bytes / 1e3, Sampled: bytes / 512e3}},
		})
	}
	return list
}

func TestHeapGrowth(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		live  func(second int) uint64
		fires bool
	}{
		{"one MiB a minute", func(s int) uint64 { return 50<<20 + uint64(s)*(1<<20)/60 }, true},            //nolint:gosec // not negative
		{"warms up and stays", func(s int) uint64 { return 50<<20 + uint64(min(s, 600))<<15 }, false},      //nolint:gosec // not negative
		{"follows a daily wave of load", func(s int) uint64 { return 50<<20 + uint64(s%1800)<<14 }, false}, //nolint:gosec // not negative
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.heaps = func() []*memstats.Heap { return heapsOf(20e6) }
			w.run(2*time.Hour, func(s int) {
				w.memory.Time, w.memory.HeapLiveBytes = w.now, test.live(s)
				w.memory.NumGC++
				w.memory.ResidentBytes, w.memory.LimitBytes = w.memory.HeapLiveBytes+20<<20, 1<<30
			})
			if !test.fires {
				w.wantSilence()
				return
			}
			f := w.wantFiring("heap-growth")
			if f.Culprit.Function != mainModule+"/app.(*R).remember" || !strings.Contains(f.Reason, "memory limit is reached in about") {
				t.Errorf("got %s: %s", f.String(), f.Reason)
			}
		})
	}
}

func TestProofIsBelievedTheSecondTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	marked := []stackmatch.Group{{Stack: (&fake{function: "leak", line: 3}).stack(), Count: 1, WaitReason: "chan receive"}}
	w.proof = marked
	w.tick()
	if got := w.in(leakguard.StatePending); len(got) != 1 {
		t.Errorf("after one leak profile got %v, want pending", w.last)
	}
	w.proof = nil
	w.now = w.now.Add(10 * time.Minute)
	w.tick()
	if got := w.in(leakguard.StatePending); len(got) != 1 {
		t.Errorf("between two leak profiles got %v, want pending", w.last)
	}
	w.proof = marked
	w.now = w.now.Add(10 * time.Second)
	w.tick()
	if f := w.wantFiring("unreachable"); f.Tier != leakguard.TierProven {
		t.Errorf("got tier %s, want proven", f.Tier)
	}
}

// knownRules takes on one culprit.
type knownRules struct{ culprit string }

func (knownRules) Match(*stackmatch.Group, *stackmatch.Context) (*stackmatch.Rule, bool) {
	return nil, false
}

func (k knownRules) Suppressed(_, _, culprit, _ string) (owner, reason string, ok bool) {
	return "team a", "fixed in the next release", culprit == k.culprit
}

// panickingRules must cost their host nothing but the names.
type panickingRules struct{}

func (panickingRules) Match(*stackmatch.Group, *stackmatch.Context) (*stackmatch.Rule, bool) {
	panic("broken rule")
}

var (
	_ leakguard.Rules      = (*rulefile.Reloader)(nil)
	_ leakguard.Suppressor = (*rulefile.Reloader)(nil)
)

func TestKnownFindingsAreListed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		rules leakguard.Rules
		state leakguard.State
	}{
		{"known", knownRules{mainModule + "/app.leak"}, leakguard.StateListed},
		{"another is known", knownRules{mainModule + "/app.other"}, leakguard.StateFiring},
		{"rules that panic", panickingRules{}, leakguard.StateFiring},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d, err := leakguard.NewDetector(leakguard.Options{MainModule: mainModule, Rules: test.rules})
			if err != nil {
				t.Fatal(err)
			}
			w.detector = d
			w.run(6*time.Minute, func(s int) { w.start("app", w.reconcile(s%20), "leak") })
			if len(w.last) != 1 || w.last[0].State != test.state {
				t.Errorf("got %v, want one finding that is %s", w.last, test.state)
			}
			if test.state == leakguard.StateListed && !strings.Contains(w.last[0].Reason, "known to team a: fixed in the next release") {
				t.Errorf("got reason %q, want the owner and the reason in it", w.last[0].Reason)
			}
		})
	}
}

func TestReconcileInFlight(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		usual time.Duration // how long another reconcile of the controller took
		after time.Duration
		state leakguard.State // empty for no finding
	}{
		{"nine minutes", 0, 9 * time.Minute, ""},
		{"twelve minutes", 0, 12 * time.Minute, leakguard.StateListed},
		{"half an hour", 0, 30 * time.Minute, leakguard.StateFiring},
		{"half an hour where a quarter is usual", 15 * time.Minute, 45 * time.Minute, leakguard.StateListed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if test.usual > 0 {
				w.inFlight = []probes.Open{{Scope: "app", ID: w.reconcile(1), Since: w.now}}
				w.run(test.usual, func(int) {})
			}
			id := w.reconcile(2)
			hangs := frame.Frame{Function: "net/http.(*persistConn).roundTrip", File: "/go/src/net/http/transport.go", Line: 2600}
			w.start("app", id, "(*R).Reconcile.func1") // which it started
			g := w.start("app", id, "(*R).Reconcile")
			g.wait, g.calls = "IO wait", []frame.Frame{hangs}
			g.callers = []frame.Frame{{Function: "github.com/leakguard/leakguard/leakguard.(*scoped[...]).Reconcile", File: "/src/leakguard/reconciler.go", Line: 69}}
			w.inFlight = []probes.Open{{Scope: "app", ID: id, Since: w.now}}
			w.run(test.after-test.usual, func(int) {})
			if test.state == "" {
				if len(w.last) > 0 {
					t.Errorf("got %v, want nothing", w.last)
				}
				return
			}
			if len(w.last) != 1 || w.last[0].State != test.state || w.last[0].Rule != "in-flight" {
				t.Fatalf("got %v, want one %s finding of a reconcile in flight", w.last, test.state)
			}
			f := w.last[0]
			if len(f.Stacks) == 0 || !slices.Contains(f.Stacks[0], hangs) || f.Culprit.Function != mainModule+"/app.(*R).Reconcile" || f.WaitReason != "IO wait" {
				t.Errorf("got culprit %s waiting for %q in %v, want the reconcile, and the call that it hangs in", f.Culprit.Function, f.WaitReason, f.Stacks)
			}
		})
	}
}

// TestBoundedWorkIsANotice starts twelve seconds of work in each reconcile: the notice says how it piles up.
func TestBoundedWorkIsANotice(t *testing.T) {
	t.Parallel()
	for every, want := range map[int]string{
		1: "3597 an hour, the longest after 10s; 13 are alive now",
		3: "1199 an hour, the longest after 10s; 4 are alive now",
	} {
		w := newWorld(t)
		w.run(time.Hour, func(s int) {
			w.end(func(g *fake) bool { return w.now.Sub(g.born) > 12*time.Second })
			if s%every == 0 {
				w.start("app", w.reconcile(s%5), "work")
			}
		})
		if len(w.last) != 1 || w.last[0].Tier != leakguard.TierNotice || w.last[0].State != leakguard.StateListed {
			t.Fatalf("one each %d s: got %v, want one notice", every, w.last)
		}
		if got := w.last[0].Reason; !strings.Contains(got, want) || !strings.Contains(got, "the rate of the reconciles times how long each goroutine takes") {
			t.Errorf("one each %d s: got %q, want %q in it", every, got, want)
		}
	}
}

// TestCulpritOfAGenericMethod leaves library goroutines behind whose function has type arguments: the finding is one, under one
// name, from when it is pending until it is over, of a function that the rules know, which have it without those, and of one that
// they do not know.
func TestCulpritOfAGenericMethod(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"(*delayingType[...]).waitingLoop", "(*delayingType[...]).otherLoop"} {
		const pkg = "k8s.io/client-go/util/workqueue."
		shown := pkg + strings.Replace(method, "[...]", "", 1)
		w := newWorld(t)
		names, prints, states := map[string]bool{}, map[string]bool{}, map[leakguard.State]bool{}
		look := func() {
			for _, f := range w.last {
				names[f.Culprit.Function], prints[f.Fingerprint], states[f.State] = true, true, true
			}
		}
		w.run(5*time.Minute, func(s int) {
			look()
			if s%5 == 0 {
				g := w.start("app", w.reconcile(s%3), pkg+method)
				g.full, g.wait = true, "select"
			}
		})
		w.end(func(*fake) bool { return true })
		w.run(10*time.Minute, func(int) { look() })
		if len(names) != 1 || !names[shown] || len(prints) != 1 {
			t.Errorf("%s: got the names %v and the fingerprints %v, want one of each", method, names, prints)
		}
		for _, state := range []leakguard.State{leakguard.StatePending, leakguard.StateFiring, leakguard.StateResolved} {
			if !states[state] {
				t.Errorf("%s: it was never %s", method, state)
			}
		}
	}
}
