package leakguard_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leakguard/leakguard/examples/operator/miniapi"
	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// workloads are the resources that an operator's Pod belongs to.
func workloads() []miniapi.Resource {
	return []miniapi.Resource{
		{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true, Status: true},
		{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true, Status: true},
		{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true, Status: true},
	}
}

// owned makes objects each of which controls the next one, and gives their UIDs.
func owned(t *testing.T, cfg *rest.Config, names ...string) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	var above []metav1.OwnerReference
	for _, x := range names {
		kind, name, _ := strings.Cut(x, "/")
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("apps/v1")
		if kind == "Pod" {
			o.SetAPIVersion("v1")
		}
		o.SetKind(kind)
		o.SetNamespace("default")
		o.SetName(name)
		o.SetOwnerReferences(above)
		if err := direct(t, cfg).Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		yes := true
		above = []metav1.OwnerReference{{APIVersion: o.GetAPIVersion(), Kind: kind, Name: name, UID: o.GetUID(), Controller: &yes}}
		uids[kind] = o.GetUID()
	}
	return uids
}

// lost is a probe that knows of leaks at two places.
type lost struct{}

func (lost) Name() string { return "lost" }

func (lost) Read(_ context.Context, dst []probes.Reading) []probes.Reading {
	for _, function := range []string{"example.com/op.first", "example.com/op.second"} {
		dst = append(dst, probes.Reading{
			Resource: "things", Count: 5, Leaked: true, Reason: "five things are lost", Culprit: frame.Frame{Function: function, File: "op.go", Line: 1},
		})
	}
	return dst
}

// TestManagerEvents has two findings at once: each gives an Event about the Pod and one about the Deployment that it belongs
// to, with the UIDs by which kubectl describe looks for them.
func TestManagerEvents(t *testing.T) {
	leavesNothing(t)
	t.Setenv("POD_NAME", "operator-0")
	t.Setenv("POD_NAMESPACE", "default")
	cfg := apiServer(t, workloads()...)
	uids := owned(t, cfg, "Deployment/operator", "ReplicaSet/operator-1", "Pod/operator-0")
	opts, _ := options(t)
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: scale, Registerer: prometheus.NewRegistry(), Probes: []probes.Probe{lost{}}})
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, mgr)
	var events eventsv1.EventList
	eventually(t, "four Events", func() bool {
		if err := direct(t, cfg).List(t.Context(), &events, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		return len(events.Items) >= 4
	})
	stop()
	var got []string
	for i := range events.Items {
		e := &events.Items[i]
		name := "unknown"
		for _, function := range []string{"first", "second"} {
			if strings.Contains(e.Note, "example.com/op."+function) {
				name = function
			}
		}
		got = append(got, e.Reason+" "+name+" of "+e.Regarding.Kind+"/"+e.Regarding.Name+", related "+e.Related.Kind+"/"+e.Related.Name)
		if e.Regarding.UID != uids[e.Regarding.Kind] || e.Related.UID != uids[e.Related.Kind] || e.Type != corev1.EventTypeWarning {
			t.Errorf("%s: got UIDs %q and %q and type %s", e.Note, e.Regarding.UID, e.Related.UID, e.Type)
		}
	}
	slices.Sort(got)
	want := []string{
		"LeakFound first of Deployment/operator, related Pod/operator-0", "LeakFound first of Pod/operator-0, related Deployment/operator",
		"LeakFound second of Deployment/operator, related Pod/operator-0", "LeakFound second of Pod/operator-0, related Deployment/operator",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got Events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := strings.Join(mgr.Guard().Report().Notices, "\n"); strings.Contains(n, "Events") {
		t.Errorf("got notices %q, want none about Events", n)
	}
}
