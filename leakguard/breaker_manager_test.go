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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

// broken is a probe that counts what the controller broken has lost.
type broken struct{ count atomic.Int64 }

func (*broken) Name() string { return "broken" }

func (p *broken) Read(_ context.Context, dst []probes.Reading) []probes.Reading {
	return append(dst, probes.Reading{Resource: "things", Scope: "broken", Count: float64(p.count.Load()), Leaked: true})
}

// breakerManager runs a manager in the Pod operator-0 with controllers that leak nothing. Each of them has run when it returns.
func breakerManager(t *testing.T, cfg *rest.Config, p *broken, controllers ...string) *leakguard.Manager {
	t.Helper()
	t.Setenv("POD_NAME", "operator-0")
	t.Setenv("POD_NAMESPACE", "default")
	opts, _ := options(t)
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{
		Scale: scale, Registerer: prometheus.NewRegistry(), Probes: []probes.Probe{p}, Breaker: &leakguard.Breaker{MaxLeaked: 5, Trial: 5 * time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	createMaps(t, cfg, 1)
	reconcilers := map[string]*churn{}
	for _, name := range controllers {
		reconcilers[name] = &churn{Client: mgr.GetClient()}
		if err := ctrl.NewControllerManagedBy(mgr).Named(name).For(&corev1.ConfigMap{}).Complete(reconcilers[name]); err != nil {
			t.Fatal(err)
		}
	}
	run(t, mgr)
	eventually(t, "all controllers run", func() bool {
		for _, r := range reconcilers {
			if r.runs.Load() == 0 {
				return false
			}
		}
		return mgr.Guard().Report().Sampling.Taken > 0
	})
	return mgr
}

// breakerEvents gives the Events of the breaker by the state that they are about: their type and their note.
func breakerEvents(t *testing.T, cfg *rest.Config) map[string][2]string {
	t.Helper()
	var list eventsv1.EventList
	if err := direct(t, cfg).List(t.Context(), &list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	found := map[string][2]string{}
	for i := range list.Items {
		if e := &list.Items[i]; e.Reason == "LeakBreaker" {
			found[strings.Split(e.Action, "/")[1]] = [2]string{e.Type, e.Note}
		}
	}
	return found
}

// conditions gives the conditions of the Pod operator-0 by type.
func conditions(t *testing.T, cfg *rest.Config) map[corev1.PodConditionType]corev1.PodCondition {
	t.Helper()
	var pod corev1.Pod
	if err := direct(t, cfg).Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "operator-0"}, &pod); err != nil {
		t.Fatal(err)
	}
	byType := map[corev1.PodConditionType]corev1.PodCondition{}
	for _, c := range pod.Status.Conditions {
		byType[c.Type] = c
	}
	return byType
}

// TestBreakerConditionAndEvents follows the Pod's condition from the start of a manager to the end of a trial. What an earlier
// container left is corrected, and conditions of others stay.
func TestBreakerConditionAndEvents(t *testing.T) {
	cfg := apiServer(t, workloads()...)
	owned(t, cfg, "Pod/operator-0")
	var pod corev1.Pod
	if err := direct(t, cfg).Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "operator-0"}, &pod); err != nil {
		t.Fatal(err)
	}
	long := metav1.NewTime(time.Unix(1_700_000_000, 0))
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: long},
		{Type: leakguard.ControllerPaused, Status: corev1.ConditionTrue, Message: "of an earlier container", LastTransitionTime: long},
	}
	if err := direct(t, cfg).Status().Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	p := &broken{}
	mgr := breakerManager(t, cfg, p, "broken", "works")
	wait := func(what string, status corev1.ConditionStatus, reason, message string) (c corev1.PodCondition) {
		t.Helper()
		eventually(t, what, func() bool {
			c = conditions(t, cfg)[leakguard.ControllerPaused]
			return c.Status == status && c.Reason == reason && strings.HasPrefix(c.Message, message)
		})
		return c
	}
	started := wait("nothing is paused", corev1.ConditionFalse, "NoControllerPaused", "no controller is paused")
	p.count.Store(20)
	paused := wait("the condition says who is paused", corev1.ConditionTrue, "ControllerLeaks", "controller broken is paused until 2")
	if !strings.Contains(paused.Message, "20 leaked in things") || started.LastTransitionTime.Equal(&long) {
		t.Errorf("got the conditions %+v and %+v", started, paused)
	}
	trial := wait("the trial", corev1.ConditionFalse, "NoControllerPaused", "controller broken is on trial until 2")
	closed := wait("the end of the trial", corev1.ConditionFalse, "NoControllerPaused", "no controller is paused")
	if !trial.LastTransitionTime.Equal(&closed.LastTransitionTime) || trial.LastTransitionTime.Before(&paused.LastTransitionTime) {
		t.Errorf("got transitions at %v, %v and %v, want the last two the same", paused.LastTransitionTime, trial.LastTransitionTime, closed.LastTransitionTime)
	}
	if ready := conditions(t, cfg)[corev1.PodReady]; ready.Status != corev1.ConditionTrue || !ready.LastTransitionTime.Equal(&long) {
		t.Errorf("got the condition Ready %+v, want it as it was", ready)
	}
	eventually(t, "three Events of the breaker", func() bool { return len(breakerEvents(t, cfg)) == 3 })
	for state, e := range breakerEvents(t, cfg) {
		kind := corev1.EventTypeNormal
		if state == "open" {
			kind = corev1.EventTypeWarning
		}
		if e[0] != kind || !strings.HasPrefix(e[1], "controller broken ") || strings.Contains(e[1], "for 0s") {
			t.Errorf("%s: got an Event of type %s: %s", state, e[0], e[1])
		}
	}
	if n := strings.Join(mgr.Guard().Report().Notices, "\n"); strings.Contains(n, "condition") {
		t.Errorf("got notices %q, want none about the condition", n)
	}
}

// TestBreakerOfTheOnlyControllerOfAManager has other scopes beside the only controller: of event handlers and of the user.
func TestBreakerOfTheOnlyControllerOfAManager(t *testing.T) {
	cfg := apiServer(t)
	leakguard.Scope("of the user").Do(t.Context(), func(context.Context) {})
	release := make(chan struct{})
	defer close(release)
	p := &broken{}
	mgr := breakerManager(t, cfg, p, "broken")
	if err := addHandler(t.Context(), mgr.GetCache(), release); err != nil {
		t.Fatal(err)
	}
	p.count.Store(20)
	eventually(t, "an Event says that it is not paused", func() bool { return len(breakerEvents(t, cfg)) > 0 })
	e := breakerEvents(t, cfg)
	if got := e["kept"]; len(e) != 1 || got[0] != corev1.EventTypeWarning || !strings.Contains(got[1], "controller broken leaks and is not paused") {
		t.Errorf("got the Events %q, want one that says that the controller is not paused", e)
	}
	if got := breakerOf(mgr.Guard(), "broken"); got != "" {
		t.Errorf("the only controller's breaker is %q", got)
	}
}
