package leakguard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// TestResources makes each kind of resource in every reconcile of a controller, and closes it at once in another.
func TestResources(t *testing.T) {
	leavesNothing(t)
	mgr, opened := managerWithResources(t)
	stop := run(t, mgr)
	defer func() {
		stop()
		for _, end := range opened() {
			end()
		}
	}()
	for _, resource := range []string{"workqueues", "event broadcasters", "watch interfaces"} {
		eventually(t, resource+" fire", func() bool {
			return slices.ContainsFunc(mgr.Guard().Report().Findings, func(f leakguard.Finding) bool {
				return f.State == leakguard.StateFiring && f.Rule == "accounting" && f.Controller == "keeps" && strings.Contains(f.Reason, resource)
			})
		})
	}
	report := mgr.Guard().Report()
	eventually(t, "the goroutines of the queues are old enough for a finding of their own", func() bool {
		return mgr.Guard().Report().At.Sub(report.At) > 4*time.Second
	})
	for _, f := range mgr.Guard().Report().Findings {
		if f.State == leakguard.StateFiring && (f.Controller != "keeps" || f.Rule != "accounting") {
			t.Errorf("got another finding: %s: %s", f.String(), f.Reason)
		}
	}
}

// managerWithResources has a controller that keeps what it makes and one that does not. opened gives what closes the rest.
func managerWithResources(t *testing.T) (mgr *leakguard.Manager, opened func() []func()) {
	t.Helper()
	cfg := apiServer(t)
	configMap(t, cfg, "default", "map")
	opts, _ := options(t)
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: scale, Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []func()
	for name, keep := range map[string]bool{"keeps": true, "closes": false} {
		r := reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			ends := []func(){makesQueue(ctx), makesBroadcaster(ctx), makesWatch(ctx)}
			if !keep {
				for _, end := range ends {
					end()
				}
				return reconcile.Result{RequeueAfter: again}, nil
			}
			mu.Lock()
			defer mu.Unlock()
			if open = append(open, ends...); len(open) > 300 { // enough is enough
				return reconcile.Result{}, nil
			}
			return reconcile.Result{RequeueAfter: again}, nil
		})
		if err := ctrl.NewControllerManagedBy(mgr).Named(name).For(&corev1.ConfigMap{}).Complete(r); err != nil {
			t.Fatal(err)
		}
	}
	return mgr, func() []func() {
		mu.Lock()
		defer mu.Unlock()
		return open
	}
}

func makesQueue(ctx context.Context) func() {
	return clientgo.Queue(ctx, leakguard.Resources(), workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())).ShutDown
}

func makesBroadcaster(ctx context.Context) func() {
	b := leakguard.Resources().Broadcaster(ctx, record.NewBroadcaster())
	_ = b.StartEventWatcher(func(*corev1.Event) {})
	return b.Shutdown
}

func makesWatch(ctx context.Context) func() {
	return leakguard.Resources().Watch(ctx, watch.NewRaceFreeFake()).Stop
}

// again is when the reconcilers of these tests ask for themselves.
const again = 50 * time.Millisecond

// TestControllerRateLimiters has a controller whose retries end in an error that is final: its rate limiter, a standard
// one, goes on remembering the key. All queues work as ever.
func TestControllerRateLimiters(t *testing.T) {
	for _, priorities := range []bool{false, true} {
		t.Run(fmt.Sprint("priority queue ", priorities), func(t *testing.T) {
			leavesNothing(t)
			opts, _ := options(t)
			opts.Controller.UsePriorityQueue = &priorities
			h := guardedHost(t, apiServer(t), opts)
			var mu sync.Mutex
			tries := map[string]int{}
			r := reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				if tries[req.Name]++; tries[req.Name] < 3 {
					return reconcile.Result{}, errors.New("not yet")
				}
				if req.Name == "one" {
					return reconcile.Result{}, reconcile.TerminalError(errors.New("never"))
				}
				return reconcile.Result{}, nil
			})
			name := fmt.Sprint("limited ", priorities)
			addController(t, h, controller.Options{Reconciler: r}, name, both)
			stop := run(t, h)
			eventually(t, "both were tried three times", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return tries["one"] == 3 && tries["two"] == 3
			})
			eventually(t, "one key is remembered", func() bool {
				for _, r := range leakguard.Resources().Read(t.Context(), nil) {
					if r.Scope == name && r.Resource == "rate-limited keys not forgotten" {
						return r.Count == 1
					}
				}
				return false
			})
			stop()
		})
	}
}

// both gives a queue two requests.
var both = source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	q.Add(request("one"))
	q.Add(request("two"))
	return nil
})
