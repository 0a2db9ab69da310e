package main

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/examples/operator/v1alpha1"
	"github.com/leakguard/leakguard/examples/traps"
)

const finalizer = "apps.leakguard.example/finalizer"

// appReconciler is a well-behaved controller: it keeps a finalizer and the status.
type appReconciler struct {
	client.Client
}

func (r *appReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	app := &v1alpha1.App{}
	if err := r.Get(ctx, request.NamespacedName, app); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := client.MergeFrom(app.DeepCopy())
	if !app.DeletionTimestamp.IsZero() {
		if !controllerutil.RemoveFinalizer(app, finalizer) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, client.IgnoreNotFound(r.Patch(ctx, app, before))
	}
	if controllerutil.AddFinalizer(app, finalizer) {
		return reconcile.Result{}, client.IgnoreNotFound(r.Patch(ctx, app, before))
	}
	if app.Status.ObservedGeneration == app.Generation {
		return reconcile.Result{}, nil
	}
	app.Status = v1alpha1.AppStatus{ObservedGeneration: app.Generation, ReadyReplicas: app.Spec.Replicas}
	return reconcile.Result{}, client.IgnoreNotFound(r.Status().Patch(ctx, app, before))
}

// leakyWork is what a trap does in a reconcile.
type leakyWork func(ctx context.Context, object traps.Object) error

// leakyReconciler does the work of a trap at each rollout, which is a change of the image.
type leakyReconciler struct {
	client.Client
	work leakyWork // nil for none

	mu     sync.Mutex
	images map[types.NamespacedName]string // of the Apps that are there
}

func newLeakyReconciler(c client.Client, work leakyWork) *leakyReconciler {
	return &leakyReconciler{Client: c, work: work, images: map[types.NamespacedName]string{}}
}

func (r *leakyReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := traps.Object{Namespace: request.Namespace, Name: request.Name}
	app := &v1alpha1.App{}
	err := r.Get(ctx, request.NamespacedName, app)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	object.Deleted = err != nil
	if r.work == nil || !r.rollout(request.NamespacedName, app.Spec.Image, object.Deleted) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.work(ctx, object)
}

// rollout reports whether the image of an App is new, or the App that was there is gone.
func (r *leakyReconciler) rollout(key types.NamespacedName, image string, deleted bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.images[key]
	if deleted {
		delete(r.images, key)
		return ok
	}
	r.images[key] = image
	return !ok || known != image
}
