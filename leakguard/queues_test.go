package leakguard_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/leakguard/leakguard/leakguard"
)

// TestManagerPriorityQueue queues the least urgent first.
func TestManagerPriorityQueue(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			opts, _ := options(t)
			yes := true
			opts.Controller.UsePriorityQueue = &yes
			h := build(t, apiServer(t), opts)
			order := make(chan string, 3)
			r := reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
				order <- req.Name
				return reconcile.Result{}, nil
			})
			urgencies := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
				queue, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
				if !ok {
					t.Errorf("the queue is a %T, want one with priorities", q)
					return nil
				}
				for _, x := range []struct {
					name     string
					priority int
				}{{"later", -5}, {"soon", 0}, {"now", 5}} {
					queue.AddWithOpts(priorityqueue.AddOpts{Priority: &x.priority}, request(x.name))
				}
				return nil
			})
			addController(t, h, controller.Options{Reconciler: r}, "urgent", urgencies)
			stop := run(t, h)
			if got, want := []string{<-order, <-order, <-order}, []string{"now", "soon", "later"}; !slices.Equal(got, want) {
				t.Errorf("got the order %q, want %q", got, want)
			}
			h.wantControllers(t, map[string]uint64{"urgent": 3})
			stop()
		})
	}
}

// TestManagerTypedControllers has a controller of requests that are strings, as it is and with its reconciler wrapped.
func TestManagerTypedControllers(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			opts, _ := options(t)
			h := build(t, apiServer(t), opts)
			r := &seen{}
			bare := reconcile.TypedFunc[string](func(_ context.Context, name string) (reconcile.Result, error) {
				r.note(name)
				return reconcile.Result{}, nil
			})
			for name, rec := range map[string]reconcile.TypedReconciler[string]{
				"strings": bare, "strings by hand": leakguard.TypedReconciler("strings by hand", bare),
			} {
				c, err := controller.NewTyped(name, h, controller.TypedOptions[string]{Reconciler: rec})
				if err != nil {
					t.Fatal(err)
				}
				err = c.Watch(source.TypedFunc[string](func(_ context.Context, q workqueue.TypedRateLimitingInterface[string]) error {
					q.Add("for " + name)
					return nil
				}))
				if err != nil {
					t.Fatal(err)
				}
			}
			stop := run(t, h)
			r.want(t, "for strings", "for strings by hand")
			h.wantControllers(t, map[string]uint64{"strings": 0, "strings by hand": 1})
			if h.guard != nil {
				if n := strings.Join(h.guard.Report().Notices, "\n"); !strings.Contains(n, `"strings"`) || strings.Contains(n, `"strings by hand"`) {
					t.Errorf("got notices %q, want one about the controller strings alone", n)
				}
			}
			stop()
		})
	}
}

// TestManagerRawSources has a controller that is made without the builder.
func TestManagerRawSources(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			cfg := apiServer(t)
			configMap(t, cfg, "default", "raw")
			opts, _ := options(t)
			h := build(t, cfg, opts)
			r := &seen{}
			addController(t, h, controller.Options{Reconciler: r}, "raw",
				source.Kind(h.GetCache(), &corev1.ConfigMap{}, &handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{}))
			stop := run(t, h)
			r.want(t, "default/raw")
			h.wantControllers(t, map[string]uint64{"raw": 1})
			stop()
		})
	}
}

// TestManagerControllersAddedAfterStart adds one with the builder and one without it to a manager that runs.
func TestManagerControllersAddedAfterStart(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			cfg := apiServer(t)
			configMap(t, cfg, "default", "map")
			opts, _ := options(t)
			h := build(t, cfg, opts)
			stop := run(t, h)
			<-h.Elected()
			built, raw := &seen{}, &seen{}
			if err := ctrl.NewControllerManagedBy(h).Named("late").For(&corev1.ConfigMap{}).Complete(built); err != nil {
				t.Fatal(err)
			}
			var started atomic.Bool
			addController(t, h, controller.Options{Reconciler: raw}, "late raw", one(&started))
			built.want(t, "default/map")
			raw.want(t, "default/one")
			h.wantControllers(t, map[string]uint64{"late": 1, "late raw": 1})
			stop()
		})
	}
}
