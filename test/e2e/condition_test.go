package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// losing is a probe that knows of a leak of the controller broken.
type losing struct{}

func (losing) Name() string { return "losing" }

func (losing) Read(_ context.Context, dst []probes.Reading) []probes.Reading {
	return append(dst, probes.Reading{Resource: "things", Scope: "broken", Count: 20, Leaked: true})
}

// breaking runs an operator with a breaker as a user: its controller broken has leaked once, the other one nothing.
func breaking(t *testing.T, cfg *rest.Config, user string) *leakguard.Guard {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	opts := ctrl.Options{Logger: logr.Discard()}
	opts.Metrics.BindAddress = "0"
	opts.Controller.SkipNameValidation = new(true)
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{
		Scale: 0.02, Logger: logr.Discard(), Probes: []probes.Probe{losing{}}, Breaker: &leakguard.Breaker{MaxLeaked: 5, Trial: 5 * time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"broken", "works"} {
		again := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil
		})
		c, err := controller.New(name, mgr, controller.Options{Reconciler: again})
		if err != nil {
			t.Fatal(err)
		}
		once := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			q.Add(reconcile.Request{})
			return nil
		})
		if err := c.Watch(once); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return mgr.Guard()
}

// condition gives the condition ControllerPaused of the operator's Pod, and whether it has one.
func condition(ctx context.Context, c client.Client) (corev1.PodCondition, bool, error) {
	var pod corev1.Pod
	err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "operator-1-x"}, &pod)
	for _, x := range pod.Status.Conditions {
		if x.Type == leakguard.ControllerPaused {
			return x, true, err
		}
	}
	return corev1.PodCondition{}, false, err
}

// TestConditionOfThePod has an operator that may write its Pod's status, and one that may not.
func TestConditionOfThePod(t *testing.T) {
	t.Setenv("POD_NAME", "operator-1-x")
	t.Setenv("POD_NAMESPACE", "default")
	cfg, _ := cluster(t)
	admin, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, admin, workload)
	poll := func(t *testing.T, what string, holds func(ctx context.Context) (bool, error)) {
		t.Helper()
		if pollErr := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, holds); pollErr != nil {
			c, _, _ := condition(t.Context(), admin)
			t.Fatalf("%s: %v; got the condition %+v", what, pollErr, c)
		}
	}
	t.Run("may not", func(t *testing.T) {
		guard := breaking(t, cfg, "may-not")
		poll(t, "the breaker opens", func(context.Context) (bool, error) {
			for _, c := range guard.Report().Controllers {
				if c.Name == "broken" && c.Breaker == "open" {
					return strings.Contains(strings.Join(guard.Report().Notices, "\n"), "pods/status"), nil
				}
			}
			return false, nil
		})
		if n := strings.Join(guard.Report().Notices, "\n"); strings.Count(n, "patch on pods/status") != 1 {
			t.Errorf("got notices %q, want one about the condition", n)
		}
		if c, there, err := condition(t.Context(), admin); there || err != nil {
			t.Errorf("got the condition %+v and %v, want none", c, err)
		}
	})
	t.Run("may", func(t *testing.T) {
		guard := breaking(t, cfg, "may")
		wanted := func(status corev1.ConditionStatus, message string) func(ctx context.Context) (bool, error) {
			return func(ctx context.Context) (bool, error) {
				c, _, err := condition(ctx, admin)
				return c.Status == status && strings.HasPrefix(c.Message, message) && !c.LastTransitionTime.IsZero(), err
			}
		}
		poll(t, "the pause", wanted(corev1.ConditionTrue, "controller broken is paused until 2"))
		poll(t, "the trial", wanted(corev1.ConditionFalse, "controller broken is on trial until 2"))
		poll(t, "the end of the trial", wanted(corev1.ConditionFalse, "no controller is paused"))
		if n := strings.Join(guard.Report().Notices, "\n"); strings.Contains(n, "condition") {
			t.Errorf("got notices %q, want none about the condition", n)
		}
	})
}
