package clientgo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/workqueue"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// tracked is resources under account.
type tracked struct {
	scopes    *probes.Scopes
	resources *clientgo.Resources
}

func newTracked() *tracked {
	tr := &tracked{scopes: probes.NewScopes()}
	tr.resources = clientgo.NewResources(probes.LedgerOptions{Scopes: tr.scopes})
	return tr
}

// reconcile runs f as a reconcile of ns/name.
func (tr *tracked) reconcile(t *testing.T, name string, f func(ctx context.Context)) {
	t.Helper()
	app := tr.scopes.Scope("app")
	ctx, span := app.Begin(t.Context(), app.Object("ns", name))
	defer span.End()
	f(ctx)
}

// TestResourcesNeverClosed makes each kind of resource in three reconciles of one object, closed or not.
func TestResourcesNeverClosed(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(ctx context.Context, r *clientgo.Resources) (stop func())
		want string
	}{
		{"watch", func(ctx context.Context, r *clientgo.Resources) func() {
			return r.Watch(ctx, watch.NewRaceFreeFake()).Stop
		}, "app: watch interfaces left open 3"},
		{"broadcaster", func(ctx context.Context, r *clientgo.Resources) func() {
			b := r.Broadcaster(ctx, record.NewBroadcaster())
			b.StartEventWatcher(func(*corev1.Event) {})
			return b.Shutdown
		}, "app: event broadcasters left open 3"},
		{"events broadcaster", func(ctx context.Context, r *clientgo.Resources) func() {
			return r.EventsBroadcaster(ctx, events.NewBroadcaster(&events.EventSinkImpl{Interface: fake.NewClientset().EventsV1()})).Shutdown
		}, "app: event broadcasters left open 3"},
		{"workqueue", func(ctx context.Context, r *clientgo.Resources) func() {
			return clientgo.Queue(ctx, r, workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())).ShutDown
		}, "app: workqueues left open 3"},
		{"workqueue drained", func(ctx context.Context, r *clientgo.Resources) func() {
			return clientgo.Queue(ctx, r, workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())).ShutDownWithDrain
		}, "app: workqueues left open 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaky, clean := newTracked(), newTracked()
				var stops []func()
				for range 3 {
					leaky.reconcile(t, "a", func(ctx context.Context) { stops = append(stops, tt.make(ctx, leaky.resources)) })
					clean.reconcile(t, "a", func(ctx context.Context) { tt.make(ctx, clean.resources)() })
				}
				time.Sleep(time.Minute)
				wantLeaks(t, leaky.resources, "left open", tt.want)
				wantLeaks(t, clean.resources, "closed")
				for _, stop := range stops {
					stop()
				}
				wantLeaks(t, leaky.resources, "closed at last")
				time.Sleep(time.Minute) // a drained queue ends within ten seconds
			})
		})
	}
}

func TestQueueItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTracked()
		q := clientgo.Queue(t.Context(), tr.resources, workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[int](time.Millisecond, time.Second)))
		defer q.ShutDown()
		const items = 3 * 400
		for i := range items {
			q.Add(i)
		}
		for round := range 3 { // a worker that forgets Done
			for range 400 {
				q.Get()
			}
			want := []string(nil)
			if round == 2 {
				want = []string{": items never done 1200"}
			}
			wantLeaks(t, tr.resources, fmt.Sprint("round ", round), want...)
		}
		for i := range items {
			q.Done(i)
		}
		if n := count(t, tr.resources, "items never done"); n != -1 {
			t.Errorf("%v items are not done", n)
		}
	})
}

func TestQueueKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTracked()
		q := clientgo.Queue(t.Context(), tr.resources, workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[int](time.Millisecond, time.Second)))
		defer q.ShutDown()
		for round := range 3 {
			for i := range 400 {
				q.AddRateLimited(400*round + i)
				q.AddRateLimited(400*round + i)
			}
			want := []string(nil)
			if round == 2 {
				want = []string{": rate-limited keys never forgotten 1200"}
			}
			wantLeaks(t, tr.resources, fmt.Sprint("round ", round), want...)
		}
		for i := range 1200 {
			q.Forget(i)
			q.Forget(i)
		}
		if n := count(t, tr.resources, "rate-limited keys never forgotten"); n != -1 {
			t.Errorf("%v keys are not forgotten", n)
		}
		time.Sleep(time.Minute) // lets the queue take in what it has delayed
	})
}

// TestTransportCache makes clients whose configuration is the same, and such as are like no other.
func TestTransportCache(t *testing.T) {
	c := clientgo.HookTransportCache("")
	defer c.Unhook()
	client := func(server string) {
		cfg, err := (&rest.Config{Host: "https://example.com", TLSClientConfig: rest.TLSClientConfig{ServerName: server, Insecure: true}}).TransportConfig()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := transport.New(cfg); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 4 {
		for range 10 {
			client("shared")
		}
		wantLeaks(t, c, fmt.Sprint("shared ", round))
	}
	if n := count(t, c, "client transports made"); n != 1 {
		t.Errorf("%v transports were made, want 1", n)
	}
	for round := range 3 {
		for i := range 5 {
			client(fmt.Sprint("tenant-", round, i))
		}
		want := []string(nil)
		if round == 2 {
			want = []string{": client transports of one place 15"}
		}
		wantLeaks(t, c, fmt.Sprint("one for each call ", round), want...)
	}
}
