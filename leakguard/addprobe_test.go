package leakguard_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

// TestAddProbe adds containers before a guard starts and while it runs: it asks them, and compares them with the objects of its
// manager's cache.
func TestAddProbe(t *testing.T) {
	leavesNothing(t)
	cfg := apiServer(t)
	for _, name := range []string{"a", "b", "c"} {
		configMap(t, cfg, "default", name)
	}
	opts, _ := options(t)
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: 0.05})
	if err != nil {
		t.Fatal(err)
	}
	reads := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, mgr.GetClient().Get(ctx, request.NamespacedName, &corev1.ConfigMap{})
	})
	if err = ctrl.NewControllerManagedBy(mgr).Named("owner").For(&corev1.ConfigMap{}).Complete(reads); err != nil {
		t.Fatal(err)
	}
	early := probes.Size("early", func() int { return 5 }).For("owner")
	removeEarly, err := leakguard.AddProbe(early)
	if err != nil {
		t.Fatal(err)
	}
	defer removeEarly()
	stop := run(t, mgr)
	defer stop()
	removeLate, err := leakguard.AddProbe(probes.Size("late", func() int { return 5 }).For("owner"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = leakguard.AddProbe(probes.Size("late", func() int { return 5 })); !errors.Is(err, probes.ErrSet) {
		t.Errorf("a second probe of that name: got error %v, want %v", err, probes.ErrSet)
	}
	named := func(name string) bool {
		return slices.ContainsFunc(mgr.Guard().Report().Probes, func(s probes.SetStats) bool { return s.Probe == name })
	}
	eventually(t, "both probes in the report", func() bool { return named("early") && named("late") })
	eventually(t, "three live objects beside the container", func() bool {
		readings := early.Read(t.Context(), nil)
		return len(readings) == 1 && readings[0].Covariate == 3
	})
	removeLate()
	eventually(t, "the removed probe gone", func() bool { return named("early") && !named("late") })
}
