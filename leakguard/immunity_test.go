package leakguard_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/leakguard"
)

// escaping starts a goroutine that honours the context of its reconcile, and nothing else.
type escaping struct{ alive, runs atomic.Int64 }

func (e *escaping) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	e.runs.Add(1)
	e.alive.Add(1)
	go func() {
		<-ctx.Done()
		e.alive.Add(-1)
	}()
	return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
}

func TestCancelOnReturn(t *testing.T) {
	for _, cancels := range []bool{true, false} {
		cfg := apiServer(t)
		opts, _ := options(t)
		mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: scale, Registerer: prometheus.NewRegistry(), CancelOnReturn: cancels})
		if err != nil {
			t.Fatal(err)
		}
		r := &escaping{}
		if err := ctrl.NewControllerManagedBy(mgr).Named("escaping").For(&corev1.ConfigMap{}).Complete(r); err != nil {
			t.Fatal(err)
		}
		createMaps(t, cfg, 1)
		stop := run(t, mgr)
		eventually(t, "twenty reconciles", func() bool { return r.runs.Load() >= 20 && mgr.Guard().Report().Sampling.Taken > 0 })
		if alive := r.alive.Load(); (alive <= 2) != cancels {
			t.Errorf("CancelOnReturn %t: got %d goroutines alive after 20 reconciles", cancels, alive)
		}
		stop()
		eventually(t, "the goroutines end with the manager", func() bool { return r.alive.Load() == 0 })
	}
}

// breakerOf gives the state of a controller's breaker.
func breakerOf(guard *leakguard.Guard, controller string) string {
	for _, c := range guard.Report().Controllers {
		if c.Name == controller {
			return c.Breaker
		}
	}
	return "unknown"
}

// TestBreakerPausesTheLeakingController also looks for the Events of the operator's own Pod.
func TestBreakerPausesTheLeakingController(t *testing.T) {
	t.Setenv("POD_NAME", "operator-0")
	t.Setenv("POD_NAMESPACE", "default")
	cfg := apiServer(t)
	opts, _ := options(t)
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{
		Scale: scale, Registerer: prometheus.NewRegistry(), Breaker: &leakguard.Breaker{MaxLeaked: 5, Pause: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	leaky, clean := &churn{Client: mgr.GetClient(), block: make(chan struct{})}, &churn{Client: mgr.GetClient()}
	leaky.leak.Store(true)
	for name, r := range map[string]reconcile.Reconciler{"broken": leaky, "works": clean} {
		if err = ctrl.NewControllerManagedBy(mgr).Named(name).For(&corev1.ConfigMap{}).Complete(r); err != nil {
			t.Fatal(err)
		}
	}
	createMaps(t, cfg, 3)
	stop := run(t, mgr)
	breaker := func(controller string) string { return breakerOf(mgr.Guard(), controller) }
	eventually(t, "the breaker opens", func() bool { return breaker("broken") == "open" })
	paused, working := leaky.runs.Load(), clean.runs.Load()
	eventually(t, "the other controller goes on", func() bool { return clean.runs.Load() > working+50 })
	if more := leaky.runs.Load() - paused; more > 3 {
		t.Errorf("the paused controller ran %d times", more)
	}
	if got := breaker("works"); got != "" {
		t.Errorf("the working controller's breaker is %q", got)
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "Events about the leak and the breaker", func() bool {
		var list eventsv1.EventList
		if err := c.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, e := range list.Items {
			if e.Regarding.Name == "operator-0" && (strings.Contains(e.Note, "controller=broken") || strings.Contains(e.Note, "controller broken")) {
				found[e.Reason] = true
			}
		}
		return found["LeakFound"] && found["LeakBreaker"]
	})
	stop()
	close(leaky.block)
}
