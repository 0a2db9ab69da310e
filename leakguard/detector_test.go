package leakguard_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

const mainModule = "example.com/op"

// world is a make-believe process: goroutines that programs start and end, and the clock.
type world struct {
	t        *testing.T
	detector *leakguard.Detector
	now      time.Time
	seq      uint64
	living   []*fake
	objects  fakeObjects
	inFlight []probes.Open
	last     []leakguard.Finding
	dumps    int
	refuse   bool // no dump is ever taken
	readings []probes.Reading
	memory   memstats.Sample
	load     leakguard.Load
	heaps    func() []*memstats.Heap
	proof    []stackmatch.Group
}

// fake is a goroutine.
type fake struct {
	id, creator uint64
	controller  string
	span        probes.SpanID // zero for none
	function    string        // within the main module's package app, unless full
	full        bool
	wait        string
	born        time.Time
	line        int
	calls       []frame.Frame // that function is in, leaf first; nil for none
	callers     []frame.Frame // of function; nil for none
}

type fakeObjects struct {
	gone  map[probes.Object]time.Time
	known map[probes.Object]bool
	total int
}

func (f fakeObjects) State(_ string, o probes.Object) (probes.ObjectState, time.Time) {
	if at, ok := f.gone[o]; ok {
		return probes.ObjectGone, at
	}
	if f.known[o] {
		return probes.ObjectLive, time.Time{}
	}
	return probes.ObjectUnknown, time.Time{}
}

func (f fakeObjects) Total() int { return f.total }

func newWorld(t *testing.T) *world {
	t.Helper()
	d, err := leakguard.NewDetector(leakguard.Options{MainModule: mainModule})
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, detector: d, now: time.Unix(1_700_000_000, 0),
		objects: fakeObjects{gone: map[probes.Object]time.Time{}, known: map[probes.Object]bool{}},
	}
}

// reconcile gives the id of a new reconcile of an object.
func (w *world) reconcile(object int) probes.SpanID {
	w.seq++
	o := probes.Object(object + 1) //nolint:gosec // small
	w.objects.known[o] = true
	return probes.SpanID{Seq: w.seq, Object: o}
}

// start starts a goroutine for a reconcile, or for none.
func (w *world) start(controller string, span probes.SpanID, function string) *fake {
	w.seq++
	g := &fake{id: w.seq, creator: 1_000_000 + w.seq, controller: controller, span: span, function: function, wait: "chan receive", born: w.now, line: 88}
	w.living = append(w.living, g)
	return g
}

// end ends the goroutines that the filter picks.
func (w *world) end(pick func(*fake) bool) {
	kept := w.living[:0]
	for _, g := range w.living {
		if !pick(g) {
			kept = append(kept, g)
		}
	}
	w.living = kept
}

func (g *fake) stack() []frame.Frame {
	function := mainModule + "/app." + g.function
	if g.full {
		function = g.function
	}
	return slices.Concat(g.calls, []frame.Frame{{Function: function, File: "/src/app/reconciler.go", Line: g.line}}, g.callers)
}

// tick samples the world.
func (w *world) tick() {
	ev := leakguard.Evidence{At: w.now, InFlight: w.inFlight, Objects: w.objects, Readings: w.readings, Memory: w.memory, Load: w.load, Proof: w.proof}
	byKey := map[string]int{}
	for _, g := range w.living {
		key := fmt.Sprint(g.controller, g.span, g.function, g.wait, g.line)
		if i, ok := byKey[key]; ok {
			ev.Groups[i].Count++
			continue
		}
		byKey[key] = len(ev.Groups)
		ev.Groups = append(ev.Groups, g.group())
	}
	if w.detector.NeedsDump() {
		if ev.DumpRefused = w.refuse; !w.refuse {
			ev.Dump = w.dump()
		}
	}
	if w.detector.NeedsHeaps() && w.heaps != nil {
		ev.Heaps = w.heaps()
	}
	w.last = w.detector.Step(ev)
}

func (g *fake) group() stackmatch.Group {
	var labels []stackmatch.Label
	if g.controller != "" {
		labels = append(labels, stackmatch.Label{Key: probes.LabelController, Value: g.controller})
	}
	if g.span.Seq != 0 {
		labels = append(labels, stackmatch.Label{Key: probes.LabelReconcile, Value: g.span.String()})
	}
	id := uint64(g.line)
	for _, c := range g.function + g.wait {
		id = id*131 + uint64(c) //nolint:gosec // not negative
	}
	return stackmatch.Group{ID: id, Stack: g.stack(), Labels: labels, WaitReason: g.wait, Count: 1}
}

func (w *world) dump() *stackmatch.Dump {
	w.dumps++
	d := &stackmatch.Dump{}
	for _, g := range w.living {
		wait := w.now.Sub(g.born).Truncate(time.Minute)
		if g.wait == "sleep" {
			wait = 0
		}
		d.Goroutines = append(d.Goroutines, stackmatch.Goroutine{ID: g.id, WaitReason: g.wait, Wait: wait, Stack: g.stack(), CreatorID: g.creator})
	}
	return d
}

// run ticks every ten seconds for the given time; each second it calls step with the second since the start.
func (w *world) run(d time.Duration, step func(second int)) {
	for s := range int(d / time.Second) {
		if s%10 == 0 {
			w.tick()
		}
		step(s)
		w.now = w.now.Add(time.Second)
	}
	w.tick()
}

// alarms gives the findings in the given states.
func (w *world) in(states ...leakguard.State) []leakguard.Finding {
	var out []leakguard.Finding
	for _, f := range w.last {
		for _, s := range states {
			if f.State == s {
				out = append(out, f)
			}
		}
	}
	return out
}

func (w *world) wantSilence() {
	w.t.Helper()
	if got := w.in(leakguard.StateFiring, leakguard.StatePending); len(got) > 0 {
		w.t.Errorf("got %d findings, want none; first: %s: %s", len(got), got[0].String(), got[0].Reason)
	}
}

func TestOrphansOfOneControllerFire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	firstPending, firstFiring := 0, 0
	w.run(6*time.Minute, func(s int) {
		w.start("app", w.reconcile(s%20), "(*R).Reconcile.func1")
		if firstPending == 0 && len(w.in(leakguard.StatePending)) > 0 {
			firstPending = s
		}
		if firstFiring == 0 && len(w.in(leakguard.StateFiring)) > 0 {
			firstFiring = s
		}
	})
	firing := w.in(leakguard.StateFiring)
	if len(firing) != 1 {
		t.Fatalf("got %d firing findings, want 1: %v", len(firing), w.last)
	}
	f := firing[0]
	if f.Controller != "app" || f.Culprit.Function != mainModule+"/app.(*R).Reconcile.func1" || f.Culprit.Line != 88 || f.Rule != "orphaned" || f.WaitReason != "chan receive" {
		t.Errorf("got %+v", f)
	}
	if f.Count < 350 || f.Count > 360 {
		t.Errorf("got count %d, want about 360", f.Count)
	}
	if f.PerHour < 3000 || f.PerHour > 4500 {
		t.Errorf("got %.0f an hour, want about 3600", f.PerHour)
	}
	if firstPending == 0 || firstPending > 70 || firstFiring == 0 || firstFiring > 300 {
		t.Errorf("pending after %d s, firing after %d s, want at most 70 and 300", firstPending, firstFiring)
	}
}

// TestFasterThanTheTable leaks far more than the table can hold.
func TestFasterThanTheTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(5*time.Minute, func(s int) {
		for i := range 60 {
			w.start("app", w.reconcile((s*60+i)%500), "(*R).Reconcile.func1")
		}
	})
	if got := w.in(leakguard.StateFiring); len(got) != 1 || got[0].Count != 60*300 {
		t.Errorf("got %v, want one firing finding of 18000", got)
	}
	if _, dropped := w.detector.Orphans(); dropped == 0 {
		t.Error("got nothing dropped, want the overflow counted")
	}
}

// TestBurstIsNoGrowth leaves 5,000 goroutines behind at once and then none: they must not look like births of many cohorts.
func TestBurstIsNoGrowth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(15*time.Minute, func(s int) {
		if s == 5 {
			for i := range 5000 {
				w.start("app", w.reconcile(i%50), "(*R).Reconcile.func1")
			}
		}
	})
	if got := w.in(leakguard.StateFiring); len(got) > 0 {
		t.Errorf("got %v, want nothing firing", got)
	}
}

func TestBenignReconcileWork(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		step func(w *world, s int)
	}{
		{"one worker for each object", func(w *world, s int) {
			if s%3 == 0 {
				w.start("app", w.reconcile(s), "worker")
			}
		}},
		{"one worker for each object, replaced at each reconcile", func(w *world, s int) {
			id := w.reconcile(s % 30)
			w.end(func(g *fake) bool { return g.span.Object == id.Object })
			w.start("app", id, "worker")
		}},
		{"bounded work of five seconds", func(w *world, s int) {
			w.end(func(g *fake) bool { return w.now.Sub(g.born) > 5*time.Second })
			w.start("app", w.reconcile(s%5), "work")
		}},
		{"a singleton started lazily", func(w *world, s int) {
			if s == 7 {
				w.start("app", w.reconcile(0), "once")
			}
			w.reconcile(s % 5)
		}},
		{"informers of a reconcile without the shield", func(w *world, s int) {
			g := w.start("app", w.reconcile(s%5), "x")
			g.function = "x"
			w.end(func(f *fake) bool { return f == g })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.run(20*time.Minute, func(s int) { test.step(w, s); w.wantSilenceEvery(s) })
			w.wantSilence()
		})
	}
}

func (w *world) wantSilenceEvery(s int) {
	if s%10 == 0 {
		w.wantSilence()
	}
}

// TestJobsThatOutliveTheirReconcile end by themselves after three minutes: pending at most, never firing.
func TestJobsThatOutliveTheirReconcile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(40*time.Minute, func(s int) {
		w.end(func(g *fake) bool { return w.now.Sub(g.born) > 3*time.Minute })
		if s%4 == 0 {
			w.start("app", w.reconcile(s%10), "job")
		}
		if got := w.in(leakguard.StateFiring); len(got) > 0 {
			t.Fatalf("firing after %d s: %s", s, got[0].Reason)
		}
	})
	w.wantSilence()
}

func TestGoneObjectsProve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(12*time.Minute, func(s int) {
		if s%10 == 0 && s < 200 {
			w.start("app", w.reconcile(s), "worker") // one for each object
		}
		if s == 200 {
			for o := range 5 {
				w.objects.gone[probes.Object(o*10+1)] = w.now //nolint:gosec // small
			}
		}
	})
	got := w.in(leakguard.StateFiring)
	if len(got) != 1 || got[0].Tier != leakguard.TierProven || got[0].Rule != "object-gone" || got[0].Count != 5 {
		t.Errorf("got %v, want one proven finding of the 5 goroutines of deleted objects", got)
	}
}

func TestGoneObjectsWithCleanupJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(60*time.Minute, func(s int) {
		w.end(func(g *fake) bool { return w.now.Sub(g.born) > 4*time.Minute })
		if s%20 == 0 {
			id := w.reconcile(s)
			w.objects.gone[id.Object] = w.now
			w.start("app", id, "cleanup")
		}
		if got := w.in(leakguard.StateFiring); len(got) > 0 {
			t.Fatalf("firing after %d s: %s", s, got[0].Reason)
		}
	})
}

func TestGrowthWithoutScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 30 {
		w.start("", probes.SpanID{}, "server")
	}
	w.run(5*time.Minute, func(int) { w.start("", probes.SpanID{}, "leak") })
	got := w.in(leakguard.StateFiring)
	if len(got) != 1 || got[0].Rule != "growth" || got[0].Culprit.Function != mainModule+"/app.leak" || w.dumps == 0 {
		t.Errorf("got %v after %d dumps, want one firing growth decided by a dump", got, w.dumps)
	}
}

func TestGrowthRefusedDumpIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refuse = true
	w.run(8*time.Minute, func(s int) {
		if s%2 == 0 {
			w.start("", probes.SpanID{}, "leak")
		}
	})
	got := w.in(leakguard.StateListed, leakguard.StatePending, leakguard.StateFiring)
	if len(got) != 1 || got[0].State != leakguard.StateListed {
		t.Fatalf("got %v, want one listed finding", got)
	}
}

func TestBenignGrowth(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		step func(w *world, s int)
	}{
		{"start-up then flat", func(w *world, s int) {
			if s < 60 {
				w.start("", probes.SpanID{}, "pool")
			}
		}},
		{"load that comes and goes", func(w *world, s int) {
			if s%600 < 150 {
				w.start("", probes.SpanID{}, "request")
			} else {
				w.end(func(g *fake) bool { return g.id%2 == 0 })
			}
		}},
		{"a burst of 5,000 for 30 s", func(w *world, s int) {
			if s == 100 {
				for range 5000 {
					w.start("", probes.SpanID{}, "burst")
				}
			}
			if s == 130 {
				w.end(func(*fake) bool { return true })
			}
		}},
		{"one worker for each live object", func(w *world, s int) {
			if s%2 == 0 {
				w.objects.total++
				w.start("", probes.SpanID{}, "worker")
			}
		}},
		{"a backlog with a goroutine for each request", func(w *world, s int) {
			if s%2 == 0 {
				w.load.QueueDepth++
				w.start("", probes.SpanID{}, "request")
			}
		}},
		{"children judged, not their parents", func(w *world, s int) {
			w.start("", probes.SpanID{}, "request")
			w.end(func(g *fake) bool { return w.now.Sub(g.born) > 20*time.Second })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.run(20*time.Minute, func(s int) { test.step(w, s) })
			if got := w.in(leakguard.StateFiring); len(got) > 0 {
				t.Errorf("got %s: %s, want nothing firing", got[0].String(), got[0].Reason)
			}
		})
	}
}

func TestFiringResolves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(6*time.Minute, func(s int) { w.start("app", w.reconcile(s%20), "leak") })
	if len(w.in(leakguard.StateFiring)) != 1 {
		t.Fatal("not firing")
	}
	w.run(10*time.Minute, func(int) {}) // nothing new, but all still there
	if len(w.in(leakguard.StateFiring)) != 1 {
		t.Error("stopped firing while the goroutines are there")
	}
	w.end(func(*fake) bool { return true })
	w.run(6*time.Minute, func(int) {})
	if got := w.in(leakguard.StateResolved); len(got) != 1 {
		t.Errorf("got %v, want one resolved finding", w.last)
	}
}

func TestAccountingFiresAtTheSecondScan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.readings = []probes.Reading{{Probe: "bodies", Resource: "response bodies open", Scope: "app", Count: 3, Leaked: true}}
	w.tick()
	if got := w.in(leakguard.StatePending); len(got) != 1 {
		t.Errorf("got %v, want pending after one scan", w.last)
	}
	w.now = w.now.Add(10 * time.Second)
	w.tick()
	got := w.in(leakguard.StateFiring)
	if len(got) != 1 || got[0].Tier != leakguard.TierProven || got[0].Count != 3 {
		t.Errorf("got %v, want one proven firing finding", w.last)
	}
}

// TestClimbingFiresWhenItPersists and goes on climbing.
func TestClimbingFiresWhenItPersists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for scan, count := range []float64{300, 300, 300, 300, 300, 300, 300, 301} {
		w.readings = []probes.Reading{{Probe: "container", Resource: "podCache", Count: count, Climbing: true, Covariate: -1}}
		w.tick()
		if want := scan == 7; (len(w.in(leakguard.StateFiring)) == 1) != want {
			t.Fatalf("after scan %d got %v, want firing: %t", scan+1, w.last, want)
		}
		w.now = w.now.Add(10 * time.Second)
	}
	if f := w.in(leakguard.StateFiring)[0]; f.Tier != leakguard.TierLikely {
		t.Errorf("got tier %s, want likely", f.Tier)
	}
}
