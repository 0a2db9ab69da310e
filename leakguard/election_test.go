package leakguard_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// elected are options of a manager that needs the lease. It is given up at the end and asked for often, and lasts longer
// than any pause of a busy machine.
func elected(t *testing.T) ctrl.Options {
	t.Helper()
	opts, _ := options(t)
	long, renew, retry := time.Minute, 50*time.Second, 50*time.Millisecond
	opts.LeaderElection, opts.LeaderElectionID, opts.LeaderElectionNamespace = true, "test", "default"
	opts.LeaderElectionReleaseOnCancel = true
	opts.LeaseDuration, opts.RenewDeadline, opts.RetryPeriod = &long, &renew, &retry
	return opts
}

// leader runs a manager that holds the lease.
func leader(t *testing.T, cfg *rest.Config) (stop func()) {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, elected(t))
	if err != nil {
		t.Fatal(err)
	}
	stop = run(t, mgr)
	<-mgr.Elected()
	return stop
}

// one is a source of one request, which notes that it was started.
func one(started *atomic.Bool) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		started.Store(true)
		q.Add(request("one"))
		return nil
	})
}

func request(name string) reconcile.Request {
	r := reconcile.Request{}
	r.Namespace, r.Name = "default", name
	return r
}

// addController adds a controller with one source.
func addController(t *testing.T, h *host, o controller.Options, name string, src source.Source) {
	t.Helper()
	c, err := controller.New(name, h, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(src); err != nil {
		t.Fatal(err)
	}
}

// withCache is a runnable that has a cache and says nothing of leader election: a manager starts it with its caches.
type withCache struct {
	manager.Runnable
	of manager.Manager
}

func (w *withCache) GetCache() cache.Cache { return w.of.GetCache() }

// alone is a runnable that needs no lease.
type alone struct{ manager.RunnableFunc }

func (*alone) NeedLeaderElection() bool { return false }

// TestManagerLeaderElection runs each kind of runnable on a replica that has to wait for the lease.
func TestManagerLeaderElection(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			cfg := apiServer(t)
			release := leader(t, cfg)
			h := build(t, cfg, elected(t))
			var source, cached, lone, plain atomic.Bool
			marks := func(b *atomic.Bool) manager.RunnableFunc {
				return func(ctx context.Context) error {
					b.Store(true)
					<-ctx.Done()
					return nil
				}
			}
			r := &seen{}
			addController(t, h, controller.Options{Reconciler: r}, "elected", one(&source))
			for _, x := range []manager.Runnable{&withCache{marks(&cached), h.Manager}, &alone{marks(&lone)}, marks(&plain)} {
				if err := h.Add(x); err != nil {
					t.Fatal(err)
				}
			}
			stop := run(t, h)
			eventually(t, "what needs no lease runs", func() bool { return cached.Load() && lone.Load() })
			if h.guard != nil {
				eventually(t, "the standby samples", func() bool { return h.guard.Report().Sampling.Taken > 2 })
			}
			if got := r.all(); len(got) > 0 || source.Load() || plain.Load() {
				t.Errorf("the standby has reconciled %q, started a source: %t and a runnable: %t", got, source.Load(), plain.Load())
			}
			release()
			<-h.Elected()
			r.want(t, "default/one")
			eventually(t, "the runnable that needs the lease runs", plain.Load)
			h.wantControllers(t, map[string]uint64{"elected": 1})
			stop()
		})
	}
}

// TestManagerWarmup has two controllers on a replica that waits for the lease: only one of them starts its source then.
func TestManagerWarmup(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			cfg := apiServer(t)
			release := leader(t, cfg)
			h := build(t, cfg, elected(t))
			var warm, cold atomic.Bool
			yes := true
			r := &seen{}
			addController(t, h, controller.Options{Reconciler: r, EnableWarmup: &yes}, "warm", one(&warm))
			addController(t, h, controller.Options{Reconciler: r}, "cold", one(&cold))
			stop := run(t, h)
			eventually(t, "the source is started", warm.Load)
			if got := r.all(); len(got) > 0 || cold.Load() {
				t.Errorf("before the election got %q reconciled and the cold source started: %t", got, cold.Load())
			}
			release()
			<-h.Elected()
			r.want(t, "default/one")
			h.wantControllers(t, map[string]uint64{"warm": 1, "cold": 1})
			stop()
		})
	}
}
