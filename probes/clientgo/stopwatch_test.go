package clientgo_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"github.com/leakguard/leakguard/probes"
)

// TestTimeInHandlers has a handler that takes its time and one that does not: how long each has worked and what waits for it
// can be seen, and none of it is a leak.
func TestTimeInHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPods("a")
		i, stop := w.start(p)
		defer stop()
		slow := func(_, _ any) { time.Sleep(time.Second) }
		quick := func(_, _ any) {}
		for _, update := range []func(_, _ any){slow, quick} {
			if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: update}); err != nil {
				t.Fatal(err)
			}
		}
		for version := range 20 {
			p.watch.Modify(pod("a", version+2))
			synctest.Wait()
		}
		wantTimes(t, w, "at once", 0, 18) // one is in the handler, one in the hand of client-go
		time.Sleep(5500 * time.Millisecond)
		wantTimes(t, w, "five seconds later", 5, 13)
		time.Sleep(time.Minute)
		wantTimes(t, w, "when all is done", 20, 0)
	})
}

// wantTimes looks at the slow handler and that the quick one has taken no time and keeps up.
func wantTimes(t *testing.T, w *world, step string, seconds, pending float64) {
	t.Helper()
	got := map[string][]float64{}
	for _, r := range w.informers.Read(t.Context(), nil) {
		name, kind, found := strings.Cut(r.Resource, " event handlers of ")
		if !found {
			continue
		}
		if kind != "v1.Pod" || !r.Shown || r.Leaked || r.Climbing || r.Listed {
			t.Errorf("%s: reading %+v, want a number of the pods' handlers that is only shown", step, r)
		}
		got[name] = append(got[name], r.Count)
	}
	for _, list := range got {
		slices.Sort(list)
	}
	want := map[string][]float64{"seconds in": {0, seconds}, "notifications waiting for": {0, pending}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: the two handlers (-want +got):\n%s", step, d)
	}
}

// TestTimeOfQuickCalls estimates the time of calls that are too quick to time each: a few take a while, in no order.
func TestTimeOfQuickCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		capture := &capturing{}
		calls := 0
		h := cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) {
			if calls++; calls%9 == 0 {
				time.Sleep(9 * time.Microsecond)
			}
		}}
		i := w.informers.Wrap("pods", &empty{capture})
		if _, err := i.AddEventHandler(h); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go i.RunWithContext(ctx)
		for range 90_000 {
			capture.handler.OnUpdate(nil, nil)
		}
		synctest.Wait()
		var got probes.Reading
		for _, r := range w.informers.Read(t.Context(), nil) {
			if strings.HasPrefix(r.Resource, "seconds in event handlers") {
				got = r
			}
		}
		if want := 0.09; math.Abs(got.Count-want) > 0.02 {
			t.Errorf("got %v s, want about %v s", got.Count, want)
		}
	})
}

// empty is an informer without a store that runs until its context ends.
type empty struct{ *capturing }

func (*empty) GetStore() cache.Store { return cache.NewStore(cache.MetaNamespaceKeyFunc) }

func (*empty) RunWithContext(ctx context.Context) { <-ctx.Done() }
