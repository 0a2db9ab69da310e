package leakguard_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

// TestManagerSetup gives a plain manager a guard: its page, its check and its metrics are there, and the report tells the
// controller whose reconciler was wrapped from the one whose was not.
func TestManagerSetup(t *testing.T) {
	leavesNothing(t)
	opts, address := options(t)
	opts.Metrics.FilterProvider = asks
	_, opts.HealthProbeBindAddress = options(t)
	mgr, err := ctrl.NewManager(apiServer(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := leakguard.Setup(mgr, leakguard.Options{Scale: scale})
	if err != nil {
		t.Fatal(err)
	}
	bare, wrapped := &seen{}, &seen{}
	var started atomic.Bool
	for name, r := range map[string]reconcile.Reconciler{"setup bare": bare, "setup wrapped": leakguard.Reconciler("setup wrapped", wrapped)} {
		addController(t, &host{Manager: mgr}, controller.Options{Reconciler: r}, name, one(&started))
	}
	stop := run(t, mgr)
	bare.want(t, "default/one")
	wrapped.want(t, "default/one")
	eventually(t, "both controllers are reported", func() bool {
		known, instrumented := map[string]bool{}, map[string]bool{}
		for _, c := range guard.Report().Controllers {
			known[c.Name], instrumented[c.Name] = true, c.Instrumented
		}
		return known["setup bare"] && !instrumented["setup bare"] && instrumented["setup wrapped"]
	})
	eventually(t, "the check passes", func() bool {
		code, _ := call(t, "http://"+opts.HealthProbeBindAddress+"/healthz/leakguard", "")
		return code == http.StatusOK
	})
	if code, body := call(t, "http://"+address+leakguard.PagePath, "known"); code != http.StatusOK || !strings.Contains(body, "setup bare") {
		t.Errorf("the page behind the filter: got %d and\n%s", code, body)
	}
	const metric = `leakguard_controller_instrumented{controller="setup bare"} 0`
	if code, body := call(t, "http://"+address+"/metrics", "known"); code != http.StatusOK || !strings.Contains(body, metric) {
		t.Errorf("the metrics: got %d and %d bytes without %s", code, len(body), metric)
	}
	stop()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "leakguard_") {
			t.Errorf("after the stop there is still the metric %s", f.GetName())
		}
	}
}

// TestUnreadyIsNotDead has a leak that makes the Pod unready: a kubelet that asks whether it is alive must not restart it.
func TestUnreadyIsNotDead(t *testing.T) {
	leavesNothing(t)
	opts, _ := options(t)
	_, opts.HealthProbeBindAddress = options(t)
	mgr, err := leakguard.NewManager(apiServer(t), opts, leakguard.Options{
		Scale: scale, Registerer: prometheus.NewRegistry(), Probes: []probes.Probe{lost{}}, UnreadyOn: leakguard.TierProven,
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, mgr)
	eventually(t, "the Pod is unready", func() bool {
		code, _ := call(t, "http://"+opts.HealthProbeBindAddress+"/readyz/leakguard", "")
		return code == http.StatusInternalServerError && mgr.Guard().Report().Firing() > 0
	})
	for _, path := range []string{"/healthz", "/healthz/leakguard"} {
		if code, body := call(t, "http://"+opts.HealthProbeBindAddress+path, ""); code != http.StatusOK {
			t.Errorf("%s: got %d %s, want %d", path, code, body, http.StatusOK)
		}
	}
	if err := mgr.Guard().Check(nil); !errors.Is(err, leakguard.ErrLeaking) {
		t.Errorf("Check: got %v, want ErrLeaking", err)
	}
	if err := mgr.Guard().CheckSampling(nil); err != nil {
		t.Errorf("CheckSampling: got %v, want none", err)
	}
}
