package leakguard_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/leakguard/leakguard/leakguard"
)

// TestManagerClusters has a controller of two clusters; each has an informer of the same kind. One cluster is there from
// the start, one comes later.
func TestManagerClusters(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			home, away, later := apiServer(t), apiServer(t), apiServer(t)
			configMap(t, home, "default", "home")
			configMap(t, away, "default", "away")
			configMap(t, later, "default", "later")
			opts, _ := options(t)
			h := build(t, home, opts)
			r := &seen{}
			second := newCluster(t, h, away)
			err := ctrl.NewControllerManagedBy(h).Named("clusters").For(&corev1.ConfigMap{}).
				WatchesRawSource(source.Kind(second.GetCache(), &corev1.ConfigMap{}, &handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{})).Complete(r)
			if err != nil {
				t.Fatal(err)
			}
			stop := run(t, h)
			r.want(t, "default/away", "default/home")
			third := newCluster(t, h, later)
			addController(t, h, controller.Options{Reconciler: r}, "third cluster",
				source.Kind(third.GetCache(), &corev1.ConfigMap{}, &handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{}))
			r.want(t, "default/away", "default/home", "default/later")
			var cm corev1.ConfigMap
			if err := second.GetClient().Get(t.Context(), request("away").NamespacedName, &cm); err != nil {
				t.Error(err)
			}
			h.wantControllers(t, map[string]uint64{"clusters": 2, "third cluster": 1})
			stop()
		})
	}
}

// newCluster adds a cluster to a manager, instrumented under a guarded one.
func newCluster(t *testing.T, h *host, cfg *rest.Config) cluster.Cluster {
	t.Helper()
	var options []cluster.Option
	if guarded, ok := h.Manager.(*leakguard.Manager); ok {
		var option cluster.Option
		cfg, option = guarded.Instrument(cfg)
		options = append(options, option)
	}
	c, err := cluster.New(cfg, options...)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Add(c); err != nil {
		t.Fatal(err)
	}
	return c
}

// forgetful is a reconciler that adds a handler to another cluster's informer each time and forgets it, and asks the other
// cluster for a watch that it does not stop.
type forgetful struct {
	other  cluster.Cluster
	client client.WithWatch
	open   chan watch.Interface // with room for all, so that the test can stop them at its end
}

func (f *forgetful) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	informer, err := f.other.GetCache().GetInformer(ctx, &corev1.ConfigMap{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if _, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{}); err != nil {
		return ctrl.Result{}, err
	}
	w, err := f.client.Watch(ctx, &corev1.SecretList{})
	if err != nil {
		return ctrl.Result{}, err
	}
	select {
	case f.open <- w:
	default: // enough is enough
		w.Stop()
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
}

// TestManagerInstrument leaks handlers and watches of a second cluster: both are accounted for. What its options held before
// stays in force, and instrumenting twice counts nothing twice.
func TestManagerInstrument(t *testing.T) {
	leavesNothing(t)
	cfg, other := apiServer(t), apiServer(t)
	configMap(t, cfg, "default", "map")
	opts, _ := options(t)
	h := guardedHost(t, cfg, opts)
	mgr, ok := h.Manager.(*leakguard.Manager)
	if !ok {
		t.Fatalf("the manager is a %T", h.Manager)
	}
	made := 0
	ownCache := func(o *cluster.Options) {
		o.NewCache = func(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
			made++
			return cache.New(cfg, o)
		}
	}
	other, _ = mgr.Instrument(other)
	other, instrumented := mgr.Instrument(other)
	second, err := cluster.New(other, ownCache, instrumented)
	if err != nil {
		t.Fatal(err)
	}
	if made != 1 {
		t.Errorf("the option's NewCache was called %d times, want once", made)
	}
	if err = mgr.Add(second); err != nil {
		t.Fatal(err)
	}
	watches, err := client.NewWithWatch(other, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &forgetful{other: second, client: watches, open: make(chan watch.Interface, 1000)}
	if err := ctrl.NewControllerManagedBy(mgr).Named("forgetful").For(&corev1.ConfigMap{}).Complete(r); err != nil {
		t.Fatal(err)
	}
	stop := run(t, mgr)
	eventually(t, "both leaks fire", func() bool { return firing(mgr.Guard(), "handlers") && firing(mgr.Guard(), "watches") })
	stop()
	for len(r.open) > 0 {
		(<-r.open).Stop()
	}
}

// firing reports whether a finding of the controller forgetful fires whose reason has a word.
func firing(g *leakguard.Guard, word string) bool {
	for _, f := range g.Report().Findings {
		if f.State == leakguard.StateFiring && f.Controller == "forgetful" && strings.Contains(f.Reason, word) {
			return true
		}
	}
	return false
}

// TestManagerBareCluster adds a cluster with the option of Instrument, twice, and one without it: a notice names the latter, once.
func TestManagerBareCluster(t *testing.T) {
	leavesNothing(t)
	home, with, without := apiServer(t), apiServer(t), apiServer(t)
	opts, _ := options(t)
	h := guardedHost(t, home, opts)
	newCluster(t, h, with)
	for range 2 {
		bare, err := cluster.New(without)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Add(bare); err != nil {
			t.Fatal(err)
		}
	}
	stop := run(t, h)
	var notices []string
	eventually(t, "a notice about a cluster", func() bool {
		notices = slices.DeleteFunc(slices.Clone(h.guard.Report().Notices), func(n string) bool { return !strings.Contains(n, "cluster at") })
		return len(notices) > 0
	})
	if len(notices) != 1 || !strings.Contains(notices[0], without.Host+" is not instrumented") {
		t.Errorf("got %q, want one notice about %s", notices, without.Host)
	}
	stop()
}

// TestManagerInstrumentOfNothing gives no configuration: cluster.New says so, as it does without a guard.
func TestManagerInstrumentOfNothing(t *testing.T) {
	opts, _ := options(t)
	mgr, err := leakguard.NewManager(apiServer(t), opts, leakguard.Options{Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.New(mgr.Instrument(nil)); err == nil {
		t.Error("got a cluster without a configuration")
	}
}
