package leakguard_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/leakguard"
)

// host is a manager of either kind in a test of what a manager can do.
type host struct {
	manager.Manager // as it is: what is under test is asked for by its methods
	guard           *leakguard.Guard
	registry        *prometheus.Registry
}

// newHost makes the manager under test.
type newHost func(t *testing.T, cfg *rest.Config, opts ctrl.Options) *host

// hosts are the two kinds of managers. A feature is tested under both and must be the same; what the guard adds is checked by
// host's methods, which say nothing of a plain manager.
func hosts() map[string]newHost {
	return map[string]newHost{"plain": plainHost, "guarded": guardedHost}
}

// leavesNothing fails a test after which something runs that did not run before it. It is called first, so that it looks
// after all other cleanups.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		eventually(t, "nothing is left running", func() bool { return goleak.Find(before, strandedQueue()) == nil })
	})
}

func plainHost(t *testing.T, cfg *rest.Config, opts ctrl.Options) *host {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	return &host{Manager: mgr}
}

func guardedHost(t *testing.T, cfg *rest.Config, opts ctrl.Options) *host {
	t.Helper()
	registry := prometheus.NewRegistry()
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: scale, Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	return &host{Manager: mgr, guard: mgr.Guard(), registry: registry}
}

// wantControllers waits until the report names each controller as instrumented or not, with as many reconciles at least,
// and the metrics say the same. No finding may fire. A controller that is not instrumented has no reconciles.
func (h *host) wantControllers(t *testing.T, want map[string]uint64) {
	t.Helper()
	if h.guard == nil {
		return
	}
	eventually(t, "the report has the controllers", func() bool {
		got := map[string]uint64{}
		for _, c := range h.guard.Report().Controllers {
			if c.Instrumented == (want[c.Name] > 0) && c.Reconciles >= want[c.Name] {
				got[c.Name] = c.Reconciles
			}
		}
		return containsAll(got, want)
	})
	instrumented := gauges(t, h.registry, "leakguard_controller_instrumented", "controller")
	reconciles := gauges(t, h.registry, "leakguard_reconciles_total", "controller")
	for name, n := range want {
		value, known := instrumented[name]
		if !known || (value == 1) != (n > 0) || reconciles[name] < float64(n) {
			t.Errorf("controller %s: got metrics instrumented %v (there: %t) and reconciles %v, want %t and %d or more", name, value, known, reconciles[name], n > 0, n)
		}
	}
	for _, f := range h.guard.Report().Findings {
		if f.State == leakguard.StateFiring {
			t.Errorf("got a finding: %s: %s", f.String(), f.Reason)
		}
	}
}

func containsAll(got, want map[string]uint64) bool {
	for name := range want {
		if _, ok := got[name]; !ok {
			return false
		}
	}
	return true
}

// gauges gives the values of a gauge or a counter by one of its labels.
func gauges(t *testing.T, registry *prometheus.Registry, name, label string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label {
					values[l.GetValue()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
	}
	return values
}

// seen is a reconciler that remembers what it was asked for.
type seen struct {
	mu    sync.Mutex
	names map[string]int
}

func (s *seen) Reconcile(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
	s.note(req.String())
	return reconcile.Result{}, nil
}

func (s *seen) note(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[string]int{}
	}
	s.names[name]++
}

// all lists what it was asked for, ordered.
func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.names))
}

// want waits until it was asked for these, and fails when it was asked for others.
func (s *seen) want(t *testing.T, names ...string) {
	t.Helper()
	eventually(t, "all are reconciled", func() bool { return len(s.all()) >= len(names) })
	if got := s.all(); !slices.Equal(got, names) {
		t.Errorf("got %q reconciled, want %q", got, names)
	}
}

// direct gives a client without a cache.
func direct(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// configMap makes a map on the server, with labels from pairs.
func configMap(t *testing.T, cfg *rest.Config, namespace, name string, labels ...string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		cm.Labels[labels[i]] = labels[i+1]
	}
	if err := direct(t, cfg).Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
}
