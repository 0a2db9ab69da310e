package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// workload is an operator's Deployment, what belongs to it, and the permissions of two operators: both may write Events,
// and one may do what the README says besides, for the owner and for the condition.
const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator, namespace: default}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec: {containers: [{name: operator, image: operator}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: operator-1, namespace: default}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec: {containers: [{name: operator, image: operator}]}
---
apiVersion: v1
kind: Pod
metadata: {name: operator-1-x, namespace: default, labels: {app: operator}}
spec: {containers: [{name: operator, image: operator}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: events, namespace: default}
rules:
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: owners, namespace: default}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get]}
- {apiGroups: [apps], resources: [replicasets], verbs: [get]}
- {apiGroups: [""], resources: [pods/status], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: events, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: events}
subjects: [{kind: User, name: may}, {kind: User, name: may-not}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: owners, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: owners}
subjects: [{kind: User, name: may}]
`

// apply makes the objects of a text; those of workloads control the next one. It gives the UIDs by kind.
func apply(t *testing.T, c client.Client, text string) map[string]string {
	t.Helper()
	uids := map[string]string{}
	var above []metav1.OwnerReference
	for part := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &o.Object); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(o.GetKind(), "Role") {
			o.SetOwnerReferences(above)
		}
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		yes := true
		above = []metav1.OwnerReference{{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(), Controller: &yes}}
		uids[o.GetKind()] = string(o.GetUID())
	}
	return uids
}

// lost is a probe that knows of a leak.
type lost struct{}

func (lost) Name() string { return "lost" }

func (lost) Read(_ context.Context, dst []probes.Reading) []probes.Reading {
	return append(dst, probes.Reading{Resource: "things", Count: 5, Leaked: true, Reason: "five things are lost"})
}

// reported runs an operator as a user until it has sent as many Events about its leak, and gives what they regard, with the
// UIDs, and the notices. All Events are deleted then.
func reported(t *testing.T, cfg *rest.Config, user string, events int) (regarding map[string]string, notices string) {
	t.Helper()
	admin, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	opts := ctrl.Options{Logger: logr.Discard()}
	opts.Metrics.BindAddress = "0"
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: 0.02, Logger: logr.Discard(), Probes: []probes.Probe{lost{}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("events.k8s.io/v1")
	list.SetKind("EventList")
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		listErr := admin.List(ctx, list, client.InNamespace("default"))
		list.Items = slices.DeleteFunc(list.Items, func(event unstructured.Unstructured) bool {
			return event.Object["reportingController"] != "leakguard" // the API server has some of its own
		})
		return len(list.Items) >= events && mgr.Guard().Report().Sampling.Taken > 3, listErr
	})
	if err != nil {
		t.Fatalf("%s: got %d Events, want %d: %v", user, len(list.Items), events, err)
	}
	notices = strings.Join(mgr.Guard().Report().Notices, "\n")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	regarding = map[string]string{}
	for i := range list.Items {
		kind, _, _ := unstructured.NestedString(list.Items[i].Object, "regarding", "kind")
		uid, _, _ := unstructured.NestedString(list.Items[i].Object, "regarding", "uid")
		regarding[kind] = uid
		if err := admin.Delete(t.Context(), &list.Items[i]); err != nil {
			t.Error(err)
		}
	}
	return regarding, notices
}

// TestEventsRegardTheOwner has a leaking operator that may read its Pod's owner, and one that may not.
func TestEventsRegardTheOwner(t *testing.T) {
	t.Setenv("POD_NAME", "operator-1-x")
	t.Setenv("POD_NAMESPACE", "default")
	cfg, _ := cluster(t)
	admin, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	uids := apply(t, admin, workload)
	got, notices := reported(t, cfg, "may", 2)
	if len(got) != 2 || got["Pod"] != uids["Pod"] || got["Deployment"] != uids["Deployment"] || strings.Contains(notices, "owner") {
		t.Errorf("with permission got Events about %v and notices %q, want the Pod and the Deployment of %v", got, notices, uids)
	}
	t.Setenv("POD_UID", uids["Pod"])
	got, notices = reported(t, cfg, "may-not", 1)
	if len(got) != 1 || got["Pod"] != uids["Pod"] || strings.Count(notices, "owner") != 1 {
		t.Errorf("without permission got Events about %v and notices %q, want the Pod alone and one notice", got, notices)
	}
}
