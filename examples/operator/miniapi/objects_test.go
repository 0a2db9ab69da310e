package miniapi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	c := connect(t, serve(t, t.TempDir()).Identity)
	ctx := t.Context()
	object := newWidget("a")
	must(t, c.Create(ctx, object))
	stale := object.DeepCopy()
	object.Object["spec"] = map[string]any{"size": int64(2)}
	must(t, c.Update(ctx, object))
	other := types.UID("other")
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	for _, test := range []struct {
		name string
		do   func() error
		want func(error) bool
	}{
		{"create twice", func() error { return c.Create(ctx, newWidget("a")) }, apierrors.IsAlreadyExists},
		{"create without a name", func() error { return c.Create(ctx, newWidget("")) }, apierrors.IsInvalid},
		{"update of an old version", func() error { return c.Update(ctx, stale) }, apierrors.IsConflict},
		{"update without a version", func() error { return c.Update(ctx, newWidget("a")) }, apierrors.IsInvalid},
		{"patch of an old version", func() error {
			changed := stale.DeepCopy()
			changed.SetLabels(map[string]string{"a": "b"})
			return c.Patch(ctx, changed, client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{}))
		}, apierrors.IsConflict},
		{"get nothing", func() error { return c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "b"}, newWidget("")) }, apierrors.IsNotFound},
		{"update nothing", func() error { return c.Update(ctx, withVersion(newWidget("b"))) }, apierrors.IsNotFound},
		{"delete nothing", func() error { return c.Delete(ctx, newWidget("b")) }, apierrors.IsNotFound},
		{"delete another", func() error { return c.Delete(ctx, newWidget("a"), client.Preconditions{UID: &other}) }, apierrors.IsConflict},
		{"status where there is none", func() error { return c.Status().Update(ctx, configMap) }, apierrors.IsNotFound},
		{"dry run", func() error { return c.Create(ctx, newWidget("c"), client.DryRunAll) }, apierrors.IsBadRequest},
		{"patch that is no JSON", func() error { return c.Patch(ctx, newWidget("a"), client.RawPatch(types.MergePatchType, []byte("{"))) }, apierrors.IsBadRequest},
		{"patch of an unknown field", func() error {
			return c.Patch(ctx, newWidget("a"), client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/none"}]`)))
		}, apierrors.IsBadRequest},
		{"strategic patch of a custom resource", func() error {
			return c.Patch(ctx, newWidget("a"), client.RawPatch(types.StrategicMergePatchType, []byte(`{}`)))
		}, apierrors.IsUnsupportedMediaType},
		{"field selector", func() error { return c.List(ctx, widgets(), client.MatchingFields{"spec.size": "1"}) }, apierrors.IsBadRequest},
	} {
		if err := test.do(); !test.want(err) {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
}

func withVersion(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetResourceVersion("1")
	return o
}

func TestStatusAndGeneration(t *testing.T) {
	t.Parallel()
	c := connect(t, serve(t, t.TempDir()).Identity)
	ctx := t.Context()
	o := newWidget("a")
	o.Object["status"] = map[string]any{"ready": true}
	must(t, c.Create(ctx, o))
	if _, ok := o.Object["status"]; ok || o.GetGeneration() != 1 || o.GetUID() == "" || o.GetCreationTimestamp().Time.IsZero() {
		t.Errorf("created: got %v, want no status, generation 1, an UID and a time", o.Object)
	}
	o.Object["status"], o.Object["spec"] = map[string]any{"ready": true}, map[string]any{"size": int64(5)}
	must(t, c.Status().Update(ctx, o))
	if size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size"); size != 1 || o.GetGeneration() != 1 {
		t.Errorf("status update: got size %d generation %d, want 1 1", size, o.GetGeneration())
	}
	o.Object["status"], o.Object["spec"] = map[string]any{"ready": false}, map[string]any{"size": int64(5)}
	must(t, c.Update(ctx, o))
	if ready, _, _ := unstructured.NestedBool(o.Object, "status", "ready"); !ready || o.GetGeneration() != 2 {
		t.Errorf("update: got ready %t generation %d, want true 2", ready, o.GetGeneration())
	}
	version := o.GetResourceVersion()
	o.SetLabels(map[string]string{"a": "b"})
	must(t, c.Update(ctx, o))
	if o.GetGeneration() != 2 || o.GetResourceVersion() == version {
		t.Errorf("metadata: got generation %d version %s, want 2 and a new one", o.GetGeneration(), o.GetResourceVersion())
	}
	version = o.GetResourceVersion()
	must(t, c.Update(ctx, o))
	if o.GetResourceVersion() != version {
		t.Errorf("no change: got version %s, want %s", o.GetResourceVersion(), version)
	}
}

func TestPatches(t *testing.T) {
	t.Parallel()
	c := connect(t, serve(t, t.TempDir()).Identity)
	for _, test := range []struct {
		name  string
		patch client.Patch
		want  map[string]string
	}{
		{"merge", client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":null,"c":"3"}}`)), map[string]string{"b": "2", "c": "3"}},
		{"json", client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/data/a","value":"9"}]`)), map[string]string{"a": "9", "b": "2"}},
		{"strategic", client.RawPatch(types.StrategicMergePatchType, []byte(`{"data":{"$patch":"replace","z":"1"}}`)), map[string]string{"z": "1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: test.name}, Data: map[string]string{"a": "1", "b": "2"}}
			must(t, c.Create(t.Context(), o))
			must(t, c.Patch(t.Context(), o, test.patch))
			if diff := cmp.Diff(test.want, o.Data); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFinalizers(t *testing.T) {
	t.Parallel()
	c := connect(t, serve(t, t.TempDir()).Identity)
	ctx := t.Context()
	o := newWidget("a")
	o.SetFinalizers([]string{"example.com/hold"})
	must(t, c.Create(ctx, o))
	must(t, c.Delete(ctx, o))
	must(t, c.Get(ctx, client.ObjectKeyFromObject(o), o))
	if o.GetDeletionTimestamp() == nil || o.GetGeneration() != 2 {
		t.Fatalf("got %v, want a deletion timestamp and generation 2", o.Object["metadata"])
	}
	version := o.GetResourceVersion()
	must(t, c.Delete(ctx, o))
	must(t, c.Get(ctx, client.ObjectKeyFromObject(o), o))
	if o.GetResourceVersion() != version {
		t.Error("a second deletion changed the object")
	}
	before := o.DeepCopy()
	o.SetFinalizers(nil)
	must(t, c.Patch(ctx, o, client.MergeFrom(before)))
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that it is gone", err)
	}
}

func TestDeleteAllOf(t *testing.T) {
	t.Parallel()
	c := connect(t, serve(t, t.TempDir()).Identity)
	for _, name := range []string{"a", "b", "c"} {
		o := newWidget(name)
		o.SetLabels(map[string]string{"keep": map[bool]string{true: "yes", false: "no"}[name == "b"]})
		must(t, c.Create(t.Context(), o))
	}
	must(t, c.DeleteAllOf(t.Context(), newWidget(""), client.InNamespace("default"), client.MatchingLabels{"keep": "no"}))
	left := widgets()
	must(t, c.List(t.Context(), left, client.InNamespace("default")))
	if len(left.Items) != 1 || left.Items[0].GetName() != "b" {
		t.Errorf("got %v, want b", left.Items)
	}
}

func TestLeaderElection(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	h, err := rest.HTTPClientFor(s.RESTConfig())
	must(t, err)
	defer h.CloseIdleConnections()
	clients, err := kubernetes.NewForConfigAndClient(s.RESTConfig(), h)
	must(t, err)
	for _, name := range []string{"first", "second"} { // the second gets the Lease that the first gave back
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "default", "lock", clients.CoreV1(), clients.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		led := errors.New("never led")
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { cancel() },
				OnStoppedLeading: func() { led = nil },
			},
		})
		cancel()
		must(t, led)
	}
}
