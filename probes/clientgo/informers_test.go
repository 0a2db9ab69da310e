package clientgo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// world is a set of informers under account inside a synctest bubble.
type world struct {
	t         *testing.T
	scopes    *probes.Scopes
	objects   *probes.ObjectIndex
	informers *clientgo.Informers
	make      clientgo.NewInformerFunc
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, scopes: probes.NewScopes()}
	w.objects = probes.NewObjectIndex(w.scopes)
	w.informers = clientgo.NewInformers(clientgo.InformersOptions{Ledger: probes.LedgerOptions{Scopes: w.scopes, Objects: w.objects}})
	w.newCache()
	return w
}

// newCache makes the informers that are started from now on those of another cache.
func (w *world) newCache() { w.make = w.informers.NewInformer(nil) }

// start runs an informer of pods until stop is called.
func (w *world) start(p *pods) (i cache.SharedIndexInformer, stop func()) {
	w.t.Helper()
	i = w.make(p.listerWatcher(), &corev1.Pod{}, 0, cache.Indexers{})
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.RunWithContext(ctx)
	}()
	if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
		w.t.Fatal("the informer does not sync")
	}
	return i, func() {
		cancel()
		<-done
		synctest.Wait()
	}
}

// reconcile runs f as a reconcile of pod ns/name, and lets time pass.
func (w *world) reconcile(name string, f func(ctx context.Context)) {
	w.scopes.Scope("app").Do(w.t.Context(), f)
	time.Sleep(time.Minute)
}

// add adds a handler that does nothing.
func add(t *testing.T, i cache.SharedIndexInformer) cache.ResourceEventHandlerRegistration {
	t.Helper()
	registration, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{})
	if err != nil {
		t.Fatal(err)
	}
	return registration
}

func TestHandlersNeverRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		i, stop := w.start(newPods("a"))
		add(t, i) // the controller's own, at start
		w.reconcile("a", func(context.Context) { add(t, i) })
		wantLeaks(t, w.informers, "one handler of a reconcile may be for the process")
		for range 2 {
			w.reconcile("a", func(context.Context) { add(t, i) })
		}
		wantLeaks(t, w.informers, "two more from one line", ": event handlers left open 2")
		if n := count(t, w.informers, "event handlers"); n != 4 {
			t.Errorf("%v handlers, want 4", n)
		}
		stop()
		wantLeaks(t, w.informers, "the informer has stopped, and its handlers with it")
		if n := count(t, w.informers, "event handlers"); n != -1 {
			t.Errorf("%v handlers of a stopped informer", n)
		}
	})
}

// TestHandlersRemoved is the clean twin, with each way to add one.
func TestHandlersRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		i, stop := w.start(newPods("a"))
		defer stop()
		period := time.Hour
		for range 5 {
			w.reconcile("a", func(context.Context) {
				r1 := add(t, i)
				r2, err2 := i.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{}, 0)
				r3, err3 := i.AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{}, cache.HandlerOptions{ResyncPeriod: &period})
				if err2 != nil || err3 != nil {
					t.Fatal(err2, err3)
				}
				if n := count(t, w.informers, "event handlers"); n != 3 { //nolint:contextcheck // the reader is of no span
					t.Errorf("%v handlers, want 3", n)
				}
				for _, r := range []cache.ResourceEventHandlerRegistration{r1, r2, r3, r3} {
					if err := i.RemoveEventHandler(r); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wantLeaks(t, w.informers, "all were removed")
		if n := count(t, w.informers, "event handlers"); n != -1 {
			t.Errorf("%v handlers, want none", n)
		}
	})
}

func TestHandlerOfAStoppedInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		i, stop := w.start(newPods())
		stop()
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err == nil {
			t.Error("a stopped informer takes a handler")
		}
		if n := count(t, w.informers, "event handlers"); n != -1 {
			t.Errorf("%v handlers, want none", n)
		}
	})
}

// TestHandlersSeeTheirEvents checks that the account changes nothing of what a handler is told.
func TestHandlersSeeTheirEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPods("a")
		i, stop := w.start(p)
		var got []string
		registration, err := i.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(o any, initial bool) { got = append(got, fmt.Sprint("add ", o.(*corev1.Pod).Name, " ", initial)) },
			UpdateFunc: func(_, o any) { got = append(got, "update "+o.(*corev1.Pod).Name) },
			DeleteFunc: func(o any) { got = append(got, "delete "+o.(*corev1.Pod).Name) },
		})
		if err != nil {
			t.Fatal(err)
		}
		p.watch.Modify(pod("a", 2))
		p.watch.Add(pod("b", 3))
		p.watch.Delete(pod("a", 4))
		synctest.Wait()
		if !registration.HasSynced() {
			t.Error("the registration has not synced")
		}
		stop()
		if s, want := strings.Join(got, ", "), "add a true, update a, add b false, delete a"; s != want {
			t.Errorf("events %q, want %q", s, want)
		}
	})
}

// TestInformersThatClimb starts one informer more in each round and stops none.
func TestInformersThatClimb(t *testing.T) {
	for _, tt := range []struct {
		name string
		keep int // how many informers run at most
		want []string
	}{
		{"never stopped", 100, []string{": informers of v1.Pod 12 climbs"}},
		{"stopped", 1, nil},
		{"two at once", 2, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var stops []func()
				for range 11 {
					_, stop := w.start(newPods())
					if stops = append(stops, stop); len(stops) > tt.keep {
						stops[0]()
						stops = stops[1:]
					}
					readings(t, w.informers)
				}
				_, stop := w.start(newPods())
				stops = append(stops, stop)
				wantLeaks(t, w.informers, "after twelve", tt.want...)
				for _, stop := range stops {
					stop()
				}
				if n := count(t, w.informers, "informers"); n != 0 {
					t.Errorf("%v informers run, want none", n)
				}
			})
		})
	}
}

// TestInformerRunsWithoutLabels starts an informer lazily inside a reconcile.
func TestInformerRunsWithoutLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var stop func()
		w.reconcile("a", func(context.Context) { _, stop = w.start(newPods("a")) }) //nolint:contextcheck // the informer outlives the reconcile
		for _, label := range labelsOf(t, "k8s.io/client-go") {
			if label != "" {
				t.Errorf("a goroutine of the informer is labelled %q", label)
			}
		}
		stop()
	})
}

func TestInformerFeedsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPods("a", "b")
		_, stop := w.start(p)
		w.objects.Saw("app", clientgo.KindOf(&corev1.Pod{}), w.scopes.Object("ns", "a"))
		w.objects.Refresh(time.Now())
		if n, ok := w.objects.Live("app"); n != 2 || !ok {
			t.Errorf("%d live objects, %v, want 2, true", n, ok)
		}
		p.watch.Delete(pod("a", 2))
		synctest.Wait()
		w.objects.Refresh(time.Now())
		if state, _ := w.objects.State("app", w.scopes.Object("ns", "a")); state != probes.ObjectGone {
			t.Errorf("a is %v, want gone", state)
		}
		stop()
	})
}

func TestKindOf(t *testing.T) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apps/v1")
	u.SetKind("Deployment")
	m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	for want, got := range map[string]string{
		"k8s.io/api/core/v1.Pod": clientgo.KindOf(&corev1.Pod{}),
		"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.Unstructured apps/v1, Kind=Deployment": clientgo.KindOf(u),
		"k8s.io/apimachinery/pkg/apis/meta/v1.PartialObjectMetadata /v1, Kind=Pod":                clientgo.KindOf(m),
		"unknown": clientgo.KindOf(nil),
	} {
		if got != want {
			t.Errorf("KindOf gives %q, want %q", got, want)
		}
	}
}
