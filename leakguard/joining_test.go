package leakguard_test

import (
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// The goroutines of a watch, and of an informer.
const (
	receive  = "k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive"
	stream   = "net/http/internal/http2.(*clientStream).doRequest"
	readLoop = "net/http.(*persistConn).readLoop"
	opener   = mainModule + "/app.openWatch"
)

// part starts a goroutine of a library.
func (w *world) part(controller string, span probes.SpanID, function string) {
	w.start(controller, span, function).full = true
}

// watches is the reading of a transport that has so many left open.
func watches(n int, resource string) probes.Reading {
	return probes.Reading{
		Probe: probes.TransportName, Resource: resource, Scope: "app", Count: float64(n), Covariate: -1,
		Culprit: frame.Frame{Function: opener, File: "/src/app/watch.go", Line: 7},
		Stack:   []frame.Frame{{Function: opener, File: "/src/app/watch.go", Line: 7}},
	}
}

// leakWatches leaves a watch behind each second, and more of each part for other causes, and gives the findings that were
// pending or firing at any time by culprit.
func leakWatches(w *world, bounded bool, others int) map[string]leakguard.State {
	seen, opened := map[string]leakguard.State{}, 0
	w.run(8*time.Minute, func(s int) {
		id := w.reconcile(s % 20)
		w.part("app", id, receive)
		w.part("app", id, stream)
		opened++
		for range others {
			w.part("app", w.reconcile(s%20), receive)
		}
		r := watches(max(0, opened-20), "watches left open")
		r.Leaked = true
		if bounded {
			r = watches(opened, "watches left open until they time out")
			r.Bounded = true
		}
		w.readings = []probes.Reading{r}
		for _, f := range w.in(leakguard.StatePending, leakguard.StateFiring) {
			seen[f.Culprit.Function] = f.State
		}
	})
	return seen
}

func TestPartsOfAWatchJoinItsAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := leakWatches(w, false, 0)
	if f := w.wantFiring("accounting"); f.Culprit.Function != opener || f.Controller != "app" || len(w.last) != 1 || len(f.Stacks) != 3 {
		t.Errorf("got %v with %d stacks, want one finding of the account with 3", w.last, len(f.Stacks))
	}
	if len(seen) != 1 {
		t.Errorf("pending or firing were %v, want the account only", seen)
	}
}

// TestBoundedWatchesAreListed has watches that the server will end, of which nothing may alarm until then.
func TestBoundedWatchesAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := leakWatches(w, true, 0)
	if len(seen) > 0 || len(w.last) != 1 || w.last[0].State != leakguard.StateListed || w.last[0].Culprit.Function != opener {
		t.Errorf("got %v, pending or firing were %v; want one listed finding of the account", w.last, seen)
	}
}

// TestWatchesThatAreNotKnownToBeLostYet has a server that ends its watches late, and streams that were busy: the goroutines of all
// of them are there long before the account is sure of most.
func TestWatchesThatAreNotKnownToBeLostYet(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		w := newWorld(t)
		seen, opened := map[string]leakguard.State{}, 0
		w.run(8*time.Minute, func(s int) {
			w.part("app", w.reconcile(s%20), receive)
			opened++
			lost, late := watches(max(1, opened/20), "watches left open"), watches(opened/2, "watches left open until they time out")
			lost.Leaked, late.Bounded = true, true
			if known {
				lost.InAll = float64(opened - opened/2)
			}
			w.readings = []probes.Reading{late, lost}
			for _, f := range w.in(leakguard.StatePending, leakguard.StateFiring) {
				seen[f.Culprit.Function] = f.State
			}
		})
		if got := seen[receive] == leakguard.StateFiring; got == known || seen[opener] != leakguard.StateFiring {
			t.Errorf("known %t: pending or firing were %v, want the watches, and their goroutines only if they are more", known, seen)
		}
	}
}

// TestAnotherLeakOfTheSameParts leaks three times as many watches as are accounted for.
func TestAnotherLeakOfTheSameParts(t *testing.T) {
	t.Parallel()
	for _, bounded := range []bool{false, true} {
		w := newWorld(t)
		seen := leakWatches(w, bounded, 2)
		if seen[receive] != leakguard.StateFiring {
			t.Errorf("bounded %t: got %v, want a firing finding of its own for the watches that nobody accounts for", bounded, w.last)
		}
	}
}

// TestAnotherLeakOfTheSameController leaks a goroutine of the operator's own beside watches.
func TestAnotherLeakOfTheSameController(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	opened := 0
	w.run(8*time.Minute, func(s int) {
		id := w.reconcile(s % 20)
		w.part("app", id, receive)
		opened++
		w.start("app", id, "work")
		r := watches(max(0, opened-20), "watches left open")
		r.Leaked = true
		w.readings = []probes.Reading{r}
	})
	got := map[string]bool{}
	for _, f := range w.in(leakguard.StateFiring) {
		got[f.Culprit.Function] = true
	}
	if len(got) != 2 || !got[opener] || !got[mainModule+"/app.work"] {
		t.Errorf("got %v, want the watches and the work firing", w.last)
	}
}

// TestPartsOfAnInformerJoinItsRunner runs an informer in each reconcile, whose watches the transport counts without knowing
// whose they are.
func TestPartsOfAnInformerJoinItsRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen, n := map[string]bool{}, 0
	w.run(8*time.Minute, func(s int) {
		id := w.reconcile(s % 20)
		w.start("app", id, "runInformer.func1")
		w.part("app", id, receive)
		w.part("app", id, stream)
		w.part("app", id, "context.(*cancelCtx).propagateCancel.func2")
		n++
		w.readings = []probes.Reading{{
			Probe: probes.TransportName, Resource: "several: watch configmaps", Count: float64(n), Covariate: 1, Climbing: n >= 40,
			Stack: []frame.Frame{{Function: "k8s.io/client-go/tools/cache.(*Reflector).watch"}},
		}}
		for _, f := range w.in(leakguard.StatePending, leakguard.StateFiring) {
			seen[f.Controller+" "+f.Culprit.Function] = true
		}
	})
	if f := w.wantFiring("orphaned"); len(w.last) != 1 || len(f.Stacks) != 3 || f.Controller != "app" {
		t.Errorf("got %v with %d stacks, want one finding with 3", w.last, len(f.Stacks))
	}
	if len(seen) != 1 || !seen["app "+mainModule+"/app.runInformer.func1"] {
		t.Errorf("pending or firing were %v, want the one who runs the informers only", seen)
	}
}

// TestPartsThatNobodyOwns are findings of their own.
func TestPartsThatNobodyOwns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(8*time.Minute, func(s int) { w.part("app", w.reconcile(s%20), receive) })
	if f := w.wantFiring("orphaned"); f.Culprit.Function != receive {
		t.Errorf("got %s, want the watch's goroutine", f.String())
	}
}

// TestConnectionsOfTransportsThatEndThem grow at first: each lasts until it was idle for long enough.
func TestConnectionsOfTransportsThatEndThem(t *testing.T) {
	t.Parallel()
	for _, bounded := range []bool{true, false} {
		w := newWorld(t)
		made := 0
		w.run(8*time.Minute, func(int) {
			w.part("", probes.SpanID{}, readLoop)
			made++
			r := watches(made, "HTTP transports made by reconciles")
			r.Bounded = bounded
			w.readings = []probes.Reading{r}
		})
		if firing := len(w.in(leakguard.StateFiring)) > 0; firing == bounded {
			t.Errorf("bounded %t: got %v", bounded, w.last)
		}
	}
}

// transports are the readings of the two probes that count transports of one place: those in use, and all that were made.
func transports(inUse, made int) []probes.Reading {
	using, making := watches(inUse, "HTTP transports made by reconciles"), watches(made, "client transports of one place")
	using.Bounded = true
	making.Bounded, making.Total, making.Probe = true, true, clientgo.TransportCacheName
	return []probes.Reading{using, making}
}

// TestConnectionsOfTransportsThatTwoProbesCount has the one that counts all that were made see another one than the one that
// counts those in use.
func TestConnectionsOfTransportsThatTwoProbesCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := 0
	w.run(8*time.Minute, func(int) {
		w.part("", probes.SpanID{}, readLoop)
		made++
		w.readings = transports(made, made+1)
		if got := w.in(leakguard.StatePending, leakguard.StateFiring); len(got) > 0 {
			t.Fatalf("after %d were made: %s: %s", made, got[0].String(), got[0].Reason)
		}
	})
}

// TestConnectionsOfOtherTransports has transports of the past explain no connections.
func TestConnectionsOfOtherTransports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := 0
	w.run(8*time.Minute, func(int) {
		w.part("", probes.SpanID{}, readLoop)
		made++
		w.readings = transports(3, made)
	})
	if got := w.in(leakguard.StateFiring); len(got) != 1 || got[0].Rule != "growth" {
		t.Errorf("got %v, want the connections that three transports do not explain", w.last)
	}
}

// TestInformersOfSeveralControllers has one that leaks informers, and one that has started a single one lazily, of the same
// kind.
func TestInformersOfSeveralControllers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := 1
	lazy := w.reconcile(30)
	w.start("lazy", lazy, "startOnce.func1")
	w.part("lazy", lazy, receive)
	seen := map[string]bool{}
	w.run(8*time.Minute, func(s int) {
		id := w.reconcile(s % 20)
		w.start("app", id, "runInformer.func1")
		w.part("app", id, receive)
		n++
		w.readings = []probes.Reading{{Probe: probes.TransportName, Resource: "several: watch configmaps", Count: float64(n), Covariate: 1, Climbing: n >= 40}}
		for _, f := range w.in(leakguard.StatePending, leakguard.StateFiring) {
			seen[f.Controller+" "+f.Culprit.Function] = true
		}
	})
	if len(seen) != 1 || !seen["app "+mainModule+"/app.runInformer.func1"] {
		t.Errorf("pending or firing were %v, want the one who leaks informers only", seen)
	}
}

// TestDescriptorsOfTransportsThatEndThem climb with the connections, and climb alone.
func TestDescriptorsOfTransportsThatEndThem(t *testing.T) {
	t.Parallel()
	for _, owned := range []bool{true, false} {
		w := newWorld(t)
		made := 0
		w.run(8*time.Minute, func(int) {
			made++
			w.readings = []probes.Reading{{Probe: "process", Resource: "open files: socket", Count: float64(made + 12), Covariate: -1, Climbing: true}}
			if r := watches(made, "HTTP transports made by reconciles"); owned {
				r.Bounded = true
				w.readings = append(w.readings, r)
			}
		})
		if alarm := len(w.in(leakguard.StatePending, leakguard.StateFiring)) > 0; alarm == owned {
			t.Errorf("owned %t: got %v", owned, w.last)
		}
	}
}

// TestBlockedHandlersAreNoPart has handlers that were removed while they block, beside others that were left behind: the
// goroutines of both are started for one function of client-go.
func TestBlockedHandlersAreNoPart(t *testing.T) {
	t.Parallel()
	const run = "k8s.io/client-go/tools/cache.(*processorListener).run"
	d, err := leakguard.NewDetector(leakguard.Options{MainModule: mainModule})
	if err != nil {
		t.Fatal(err)
	}
	var last []leakguard.Finding
	at, groups := time.Unix(1_700_000_000, 0), []stackmatch.Group{}
	add := func(controller string, seq int, stack ...frame.Frame) {
		id := probes.SpanID{Seq: uint64(seq + 1), Object: probes.Object(seq%20 + 1)} //nolint:gosec // not negative
		groups = append(groups, stackmatch.Group{
			ID: uint64(len(controller)), Stack: append(stack, frame.Frame{Function: run}), Count: 1, WaitReason: "chan receive",
			Labels: []stackmatch.Label{{Key: probes.LabelController, Value: controller}, {Key: probes.LabelReconcile, Value: id.String()}},
		})
	}
	for s := range 360 {
		add("blocks", 2*s, frame.Frame{Function: mainModule + "/app.block", File: "/src/app/handler.go", Line: 3})
		add("adds", 2*s+1)
		at = at.Add(time.Second)
		if s%10 != 0 {
			continue
		}
		r := watches(s, "event handlers left open")
		r.Probe, r.Scope, r.Leaked = clientgo.InformersName, "", true
		last = d.Step(leakguard.Evidence{At: at, Groups: groups, Readings: []probes.Reading{r}})
	}
	got := map[string]leakguard.State{}
	for _, f := range last {
		got[f.Controller+" "+f.Culprit.Function] = f.State
	}
	if len(got) != 2 || got[" "+opener] != leakguard.StateFiring || got["blocks "+mainModule+"/app.block"] != leakguard.StateFiring {
		t.Errorf("got %v, want the handlers left open and those that block", last)
	}
}

// TestConnectionsOfHungCalls are left behind by a goroutine of the operator's own that waits for an answer.
func TestConnectionsOfHungCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := map[string]bool{}
	w.run(8*time.Minute, func(s int) {
		id := w.reconcile(s % 20)
		w.start("app", id, "getWithoutTimeout")
		w.part("app", id, readLoop)
		w.part("app", id, "net/http.(*persistConn).writeLoop")
		for _, f := range w.in(leakguard.StatePending, leakguard.StateFiring) {
			seen[f.Culprit.Function] = true
		}
	})
	if f := w.wantFiring("orphaned"); f.Culprit.Function != mainModule+"/app.getWithoutTimeout" || len(seen) != 1 {
		t.Errorf("got %v, pending or firing were %v; want the one who waits only", w.last, seen)
	}
}
