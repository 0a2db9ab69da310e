package clientgo_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
	"k8s.io/client-go/tools/cache"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// labelsOf gives the controller label of all goroutines with a function on their stack whose name begins so.
func labelsOf(t *testing.T, function string) (labels []string) {
	t.Helper()
	var buf bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&buf, 0); err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Sample {
		for _, l := range s.Location {
			if strings.HasPrefix(l.Line[0].Function.Name, function) {
				labels = append(labels, strings.Join(s.Label[probes.LabelController], ","))
				break
			}
		}
	}
	if len(labels) == 0 {
		t.Errorf("no goroutine is in %s", function)
	}
	return labels
}

// TestBlockedHandler sends events to a handler that does not return: client-go's ring of notifications grows for ever.
func TestBlockedHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPods("a")
		i, stop := w.start(p)
		release := make(chan struct{})
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { <-release }}); err != nil {
			t.Fatal(err)
		}
		version := 1
		send := func(n int) {
			for range n {
				version++
				p.watch.Modify(pod("a", version))
				synctest.Wait()
			}
			time.Sleep(time.Minute)
		}
		send(1)
		wantLeaks(t, w.informers, "a blocked handler that nothing waits for")
		send(1)                // one is in the handler, one in the hand of client-go, the rest in the ring
		for rise := range 12 { // the first read after it is none
			var want []string
			if rise >= 9 {
				want = []string{fmt.Sprintf(": notifications waiting for one event handler %d climbs", 2*rise+2)}
			}
			send(2)
			wantLeaks(t, w.informers, fmt.Sprint("rise ", rise), want...)
		}
		if n := count(t, w.informers, "notifications waiting for event handlers"); n != 24 {
			t.Errorf("%v notifications wait, want 24", n)
		}
		close(release)
		synctest.Wait()
		wantLeaks(t, w.informers, "after it has returned")
		if n := count(t, w.informers, "notifications waiting for event handlers"); n != -1 {
			t.Errorf("%v notifications wait, want none", n)
		}
		stop()
	})
}

// TestSlowHandlerThatKeepsUp is the clean twin: it takes its time, but less than there is between events.
func TestSlowHandlerThatKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPods("a")
		i, stop := w.start(p)
		defer stop()
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { time.Sleep(time.Second) }}); err != nil {
			t.Fatal(err)
		}
		for version := range 20 {
			p.watch.Modify(pod("a", version+2))
			time.Sleep(time.Duration(version%3) * time.Second)
			wantLeaks(t, w.informers, fmt.Sprint("event ", version))
		}
		time.Sleep(time.Minute)
	})
}

// TestBurstForAHandler lets thousands of notifications wait, once.
func TestBurstForAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPods("a")
		i, stop := w.start(p)
		defer stop()
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { time.Sleep(10 * time.Millisecond) }}); err != nil {
			t.Fatal(err)
		}
		for version := range 3000 {
			p.watch.Modify(pod("a", version+2))
			if version%50 == 0 {
				synctest.Wait()
			}
		}
		for step := range 6 {
			wantLeaks(t, w.informers, fmt.Sprint("scan ", step))
			time.Sleep(10 * time.Second)
		}
		if n := count(t, w.informers, "notifications waiting for event handlers"); n != -1 {
			t.Errorf("%v notifications wait, want none", n)
		}
	})
}

func TestRemovedHandlerThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		i, stop := w.start(newPods("a"))
		release := make(chan struct{})
		registration, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-release }})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := i.RemoveEventHandler(registration); err != nil {
			t.Fatal(err)
		}
		wantLeaks(t, w.informers, "just removed")
		time.Sleep(4 * time.Minute)
		wantLeaks(t, w.informers, "four minutes later, as one may that waits for a server")
		time.Sleep(2 * time.Minute)
		wantLeaks(t, w.informers, "six minutes later", ": removed event handlers that do not return 1")
		close(release)
		synctest.Wait()
		wantLeaks(t, w.informers, "after it has returned")
		stop()
	})
}

// own is a handler of a type of its own.
type own struct{ events int }

func (o *own) OnAdd(any, bool)   { o.events++ }
func (o *own) OnUpdate(_, _ any) { o.events++ }
func (o *own) OnDelete(any)      { o.events++ }

// TestHandlerOfOwnType passes one through with a filter around it.
func TestHandlerOfOwnType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		i, stop := w.start(newPods("a", "b"))
		h := &own{}
		filter := cache.FilteringResourceEventHandler{FilterFunc: func(o any) bool {
			key, err := cache.MetaNamespaceKeyFunc(o)
			return err == nil && key == "ns/a"
		}, Handler: h}
		if _, err := i.AddEventHandler(filter); err != nil {
			t.Fatal(err)
		}
		stop()
		if h.events != 1 {
			t.Errorf("%d events, want 1", h.events)
		}
	})
}

// BenchmarkHandler is what an event costs with and without the account.
func BenchmarkHandler(b *testing.B) {
	bare := cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) {}}
	wrap := func(options clientgo.InformersOptions) cache.ResourceEventHandler {
		capture := &capturing{}
		if _, err := clientgo.NewInformers(options).Wrap("pods", capture).AddEventHandler(bare); err != nil {
			b.Fatal(err)
		}
		return capture.handler
	}
	scopes := probes.NewScopes()
	old, p := pod("a", 1), pod("a", 2)
	for name, h := range map[string]cache.ResourceEventHandler{
		"bare": bare, "account": wrap(clientgo.InformersOptions{}),
		"account and scope": wrap(clientgo.InformersOptions{HandlerScope: scopes.Scope}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.OnUpdate(old, p)
			}
		})
	}
}

// capturing is an informer that only keeps what it is given.
type capturing struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
}

func (c *capturing) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	c.handler = h
	return &registration{}, nil
}

type registration struct {
	cache.ResourceEventHandlerRegistration
}

// TestUnknownRegistration counts a handler whose notifications cannot be read.
func TestUnknownRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPods()
		actual := cache.NewSharedIndexInformer(p.listerWatcher(), pod("", 0), 0, cache.Indexers{})
		i := w.informers.Wrap("pods", &strange{actual})
		add(t, i)
		ctx, cancel := context.WithCancel(t.Context())
		go i.RunWithContext(ctx)
		synctest.Wait()
		if n := count(t, w.informers, "event handlers whose notifications cannot be counted"); n != 1 {
			t.Errorf("%v handlers cannot be counted, want 1", n)
		}
		cancel()
		synctest.Wait()
	})
}

// strange is an informer with registrations of its own.
type strange struct{ cache.SharedIndexInformer }

func (s *strange) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	r, err := s.SharedIndexInformer.AddEventHandler(h)
	return &registration{r}, err
}

// TestHandlerScope has a handler that starts a goroutine for each event, which all have one label.
func TestHandlerScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.informers = clientgo.NewInformers(clientgo.InformersOptions{HandlerScope: func(kind string) *probes.Scope {
			return w.scopes.Scope("events of " + kind[strings.LastIndexByte(kind, '/')+1:])
		}})
		w.newCache()
		i, stop := w.start(newPods("a", "b"))
		release := make(chan struct{})
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { go work(release) }}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"events of v1.Pod"}, labelsOf(t, "github.com/leakguard/leakguard/probes/clientgo_test.work")); diff != "" {
			t.Errorf("labels of the goroutines (-want +got):\n%s", diff)
		}
		time.Sleep(2 * time.Second)
		if open := w.scopes.InFlight(nil); len(open) != 0 {
			t.Errorf("in flight: %v, want nothing", open)
		}
		close(release)
		stop()
	})
}

// TestHandlerOfASpanKeepsItsLabels adds a handler inside a reconcile, which says more than the kind of its objects.
func TestHandlerOfASpanKeepsItsLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.informers = clientgo.NewInformers(clientgo.InformersOptions{HandlerScope: func(string) *probes.Scope { return w.scopes.Scope("events") }})
		w.newCache()
		i, stop := w.start(newPods("a"))
		release := make(chan struct{})
		w.scopes.Scope("app").Do(t.Context(), func(context.Context) {
			if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { go work(release) }}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if diff := cmp.Diff([]string{"app"}, labelsOf(t, "github.com/leakguard/leakguard/probes/clientgo_test.work")); diff != "" {
			t.Errorf("labels of the goroutine (-want +got):\n%s", diff)
		}
		close(release)
		stop()
	})
}

// work is what the goroutine of an event does.
func work(release <-chan struct{}) { <-release }
