package leakguard_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestManagerNamespaces has a cache of two namespaces out of three, which is two informers of one kind.
func TestManagerNamespaces(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			cfg := apiServer(t)
			for _, namespace := range []string{"default", "team", "hidden"} {
				configMap(t, cfg, namespace, "map")
			}
			opts, _ := options(t)
			opts.Cache.DefaultNamespaces = map[string]cache.Config{"default": {}, "team": {}}
			h := build(t, cfg, opts)
			r := &seen{}
			if err := ctrl.NewControllerManagedBy(h).Named("namespaces").For(&corev1.ConfigMap{}).Complete(r); err != nil {
				t.Fatal(err)
			}
			stop := run(t, h)
			r.want(t, "default/map", "team/map")
			h.wantControllers(t, map[string]uint64{"namespaces": 2})
			stop()
		})
	}
}

// TestManagerByObject has a cache of the objects with a label, without their data.
func TestManagerByObject(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			cfg := apiServer(t)
			configMap(t, cfg, "default", "labelled", "app", "operator")
			configMap(t, cfg, "default", "other")
			opts, _ := options(t)
			opts.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
				Label: labels.SelectorFromSet(labels.Set{"app": "operator"}),
				Transform: func(object any) (any, error) {
					if cm, ok := object.(*corev1.ConfigMap); ok {
						cm.Data = map[string]string{"transformed": "yes"}
					}
					return object, nil
				},
			}}
			h := build(t, cfg, opts)
			r := &seen{}
			if err := ctrl.NewControllerManagedBy(h).Named("by object").For(&corev1.ConfigMap{}).Complete(r); err != nil {
				t.Fatal(err)
			}
			stop := run(t, h)
			r.want(t, "default/labelled")
			var cm corev1.ConfigMap
			if err := h.GetClient().Get(t.Context(), request("labelled").NamespacedName, &cm); err != nil || cm.Data["transformed"] != "yes" {
				t.Errorf("the object with the label: got %v and %v, want the transformed one", cm.Data, err)
			}
			if err := h.GetClient().Get(t.Context(), request("other").NamespacedName, &cm); !apierrors.IsNotFound(err) {
				t.Errorf("the object without the label: got %v, want not found", err)
			}
			h.wantControllers(t, map[string]uint64{"by object": 1})
			stop()
		})
	}
}

// TestManagerUncachedClient has a client that reads one kind from the API server, which it can before the caches start.
func TestManagerUncachedClient(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			cfg := apiServer(t)
			configMap(t, cfg, "default", "map")
			secret := &corev1.Secret{}
			secret.Namespace, secret.Name = "default", "secret"
			if err := direct(t, cfg).Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			opts, _ := options(t)
			opts.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}}}
			h := build(t, cfg, opts)
			var cm corev1.ConfigMap
			if err := h.GetClient().Get(t.Context(), request("map").NamespacedName, &cm); err != nil {
				t.Errorf("the kind without a cache: %v", err)
			}
			var notStarted *cache.ErrCacheNotStarted
			if err := h.GetClient().Get(t.Context(), request("secret").NamespacedName, secret); !errors.As(err, &notStarted) {
				t.Errorf("the kind with a cache that is not started: got %v", err)
			}
			if err := h.GetAPIReader().Get(t.Context(), request("secret").NamespacedName, secret); err != nil {
				t.Errorf("the reader without a cache: %v", err)
			}
			r := &reads{Client: h.GetClient()}
			if err := ctrl.NewControllerManagedBy(h).Named("uncached").For(&corev1.Secret{}).Complete(r); err != nil {
				t.Fatal(err)
			}
			stop := run(t, h)
			r.want(t, "default/secret")
			h.wantControllers(t, map[string]uint64{"uncached": 1})
			stop()
		})
	}
}

// reads is a reconciler that reads both kinds.
type reads struct {
	client.Client
	seen
}

func (r *reads) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cm corev1.ConfigMap
	var secret corev1.Secret
	if err := errors.Join(r.Get(ctx, request("map").NamespacedName, &cm), r.Get(ctx, req.NamespacedName, &secret)); err != nil {
		return ctrl.Result{}, err
	}
	return r.seen.Reconcile(ctx, req)
}

// TestManagerFieldIndexer lists by an index of the manager's cache.
func TestManagerFieldIndexer(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			cfg := apiServer(t)
			configMap(t, cfg, "default", "apple", "color", "red")
			configMap(t, cfg, "default", "leaf", "color", "green")
			opts, _ := options(t)
			h := build(t, cfg, opts)
			color := func(object client.Object) []string { return []string{object.GetLabels()["color"]} }
			if err := h.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "color", color); err != nil {
				t.Fatal(err)
			}
			r := &seen{}
			if err := ctrl.NewControllerManagedBy(h).Named("indexed").For(&corev1.ConfigMap{}).Complete(r); err != nil {
				t.Fatal(err)
			}
			stop := run(t, h)
			r.want(t, "default/apple", "default/leaf")
			var list corev1.ConfigMapList
			if err := h.GetClient().List(t.Context(), &list, client.MatchingFields{"color": "red"}); err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 || list.Items[0].Name != "apple" {
				t.Errorf("got %d maps of the color, want apple alone", len(list.Items))
			}
			if err := h.GetClient().List(t.Context(), &list, client.MatchingFields{"size": "big"}); err == nil {
				t.Error("got no error for a field without an index")
			}
			h.wantControllers(t, map[string]uint64{"indexed": 2})
			stop()
		})
	}
}
