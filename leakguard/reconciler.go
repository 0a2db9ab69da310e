package leakguard

import (
	"context"
	"reflect"
	"runtime"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/probes"
)

// Reconciler wraps a reconciler so that everything its reconciles start carries the controller's name and the
// reconcile's number. NewManager does it by itself; by hand it is for managers that ctrl.NewManager made. A reconciler
// that is already wrapped is given back as it is.
func Reconciler(name string, r reconcile.Reconciler) reconcile.Reconciler {
	return TypedReconciler(name, r)
}

// TypedReconciler is Reconciler for any type of request. Controllers of other requests than reconcile.Request cannot be
// wrapped by NewManager, see [Report].Controllers.
func TypedReconciler[R comparable](name string, r reconcile.TypedReconciler[R]) reconcile.TypedReconciler[R] {
	if _, wrapped := r.(*scoped[R]); wrapped {
		return r
	}
	claimReconcile(r, name)
	return &scoped[R]{inner: r, scope: process.scopes.Scope(name)}
}

// claimReconcile makes known whose method runs below the reconciles of a controller, for what is made there with no context
// that tells.
func claimReconcile(r any, name string) {
	if r == nil {
		return
	}
	method, ok := reflect.TypeOf(r).MethodByName("Reconcile")
	if !ok {
		return
	}
	if f := runtime.FuncForPC(method.Func.Pointer()); f != nil {
		process.scopes.Claim(f.Name(), name)
	}
}

// scoped runs each reconcile as a span of its controller's scope.
type scoped[R comparable] struct {
	inner reconcile.TypedReconciler[R]
	scope *probes.Scope
}

// Reconcile implements reconcile.TypedReconciler.
func (s *scoped[R]) Reconcile(ctx context.Context, request R) (reconcile.Result, error) {
	guard := process.guard.Load()
	if guard != nil {
		if guard.options.Breaker != nil { // the clock costs a tenth of all else
			if wait := guard.breakers.wait(s.scope.Name(), time.Now()); wait > 0 {
				return reconcile.Result{RequeueAfter: wait}, nil
			}
		}
		if guard.options.CancelOnReturn {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
		}
	}
	ctx, span := s.scope.Begin(ctx, s.object(request))
	defer span.End()
	return s.inner.Reconcile(ctx, request)
}

// isScoped tells [Guard.instrument] a reconciler of any request type that was wrapped by hand.
func (s *scoped[R]) isScoped() {}

// object hashes the request. A reconcile.Request is hashed as a namespaced name, so that the object index knows it.
func (s *scoped[R]) object(request R) probes.Object {
	if r, ok := any(request).(reconcile.Request); ok {
		return s.scope.Object(r.Namespace, r.Name)
	}
	return probes.HashObject(s.scope.Set(), request)
}
