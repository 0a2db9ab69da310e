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
	const place = "client transports of one place"
	scope := probes.NewScopes().Scope("tenants")
	for _, tt := range []struct {
		name string
		work func(f func())
		want float64
	}{
		{"at start", func(f func()) { f() }, -1},
		{"in a reconcile", func(f func()) { scope.Do(t.Context(), func(context.Context) { f() }) }, 20},
	} {
		for round := range 4 {
			for i := range 5 {
				tt.work(func() { client(fmt.Sprint(tt.name, round, i)) })
			}
			want := -1.0
			if round == 3 {
				want = tt.want
			}
			wantLeaks(t, c, tt.name) // they end by themselves
			if n := count(t, c, place); n != want {
				t.Errorf("%s, round %d: got %v %s, want %v", tt.name, round, n, place, want)
			}
		}
		for range 20 { // no more are made
			readings(t, c)
		}
		if n := count(t, c, place); n != -1 {
			t.Errorf("%s, long ago: got %v %s, want none", tt.name, n, place)
		}
	}
}

// tenantClient makes a client that shares no transport.
func tenantClient(t *testing.T, name string) {
	t.Helper()
	cfg, err := (&rest.Config{Host: "https://example.com", TLSClientConfig: rest.TLSClientConfig{ServerName: name, Insecure: true}}).TransportConfig()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transport.New(cfg); err != nil {
		t.Fatal(err)
	}
}

// TestWhoMakesTransports is told by the function that is known for its controller's.
func TestWhoMakesTransports(t *testing.T) {
	scopes := probes.NewScopes()
	c := clientgo.HookTransportCache("")
	defer c.Unhook()
	c.SetScopes(scopes)
	scopes.Claim("github.com/leakguard/leakguard/probes/clientgo_test.tenantClient", "tenants")
	for round := range 4 {
		for i := range 5 {
			scopes.Scope("tenants").Do(t.Context(), func(context.Context) { tenantClient(t, fmt.Sprint("who", round, i)) })
		}
		readings(t, c)
	}
	for _, r := range readings(t, c) {
		if r.Resource == "client transports of one place" {
			if r.Scope != "tenants" || r.Count != 20 || !r.Bounded {
				t.Errorf("got %+v, want 20 of tenants", r)
			}
			return
		}
	}
	t.Error("nobody makes transports")
}
