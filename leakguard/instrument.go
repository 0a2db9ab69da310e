package leakguard

import (
	"reflect"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/probes/clientgo"
)

// instrument wraps the reconciler of a controller, in place. The builder's controllers are of an internal package, so
// their exported fields Do and Name are reached by reflection; a test fails when a supported controller-runtime loses
// them. Runnables that are not controllers are left alone.
func (g *Guard) instrument(r manager.Runnable) {
	do, name, ok := controllerFields(r)
	if !ok {
		return
	}
	if _, byHand := reflect.TypeAssert[interface{ isScoped() }](do); byHand {
		g.noteController(name, true)
		instrumentLimiter(r, name)
		return
	}
	inner, isRequest := reflect.TypeAssert[reconcile.Reconciler](do)
	if !isRequest || inner == nil || !do.CanSet() {
		g.noteController(name, false)
		g.addNotice("controller %q cannot be instrumented: wrap its reconciler with leakguard.TypedReconciler", name)
		return
	}
	do.Set(reflect.ValueOf(Reconciler(name, inner)))
	g.noteController(name, true)
	instrumentLimiter(r, name)
}

// instrumentLimiter counts the keys that a controller's rate limiter remembers, whatever its queue is.
func instrumentLimiter(r manager.Runnable, name string) {
	field := reflect.ValueOf(r).Elem().FieldByName("RateLimiter")
	if !field.IsValid() || !field.CanSet() || field.Kind() != reflect.Interface || field.IsNil() {
		return
	}
	if limiter, ok := reflect.TypeAssert[workqueue.TypedRateLimiter[reconcile.Request]](field); ok {
		field.Set(reflect.ValueOf(clientgo.RateLimiter(process.resources, name, limiter)))
	}
}

// controllerFields gives the reconciler and the name of a controller-runtime controller of any request type.
func controllerFields(r manager.Runnable) (do reflect.Value, name string, ok bool) {
	v := reflect.ValueOf(r)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, "", false
	}
	const internal = "sigs.k8s.io/controller-runtime/pkg/internal/controller"
	if v.Elem().Type().PkgPath() != internal {
		return reflect.Value{}, "", false
	}
	do = v.Elem().FieldByName("Do")
	field := v.Elem().FieldByName("Name")
	if !do.IsValid() || do.Kind() != reflect.Interface || field.Kind() != reflect.String {
		return reflect.Value{}, "", false
	}
	return do, field.String(), true
}

// metricsServer gives the manager's metrics server by reflection; ok is false for a manager of another kind.
func metricsServer(mgr manager.Manager) (server reflect.Value, ok bool) {
	if m, ours := mgr.(*Manager); ours {
		mgr = m.Manager
	}
	v := reflect.ValueOf(mgr)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	server = v.Elem().FieldByName("metricsServer")
	return server, server.IsValid() && server.Kind() == reflect.Interface
}

// metricsAreOff reports whether the manager is known to have no metrics server.
func metricsAreOff(mgr manager.Manager) bool {
	server, ok := metricsServer(mgr)
	return ok && server.IsNil()
}

// metricsAreFiltered reports whether the manager's metrics server is known to ask its callers who they are. Any doubt
// counts as no: the page then shows less.
func metricsAreFiltered(mgr manager.Manager) bool {
	server, ok := metricsServer(mgr)
	if !ok || server.IsNil() {
		return false
	}
	v := server.Elem()
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return false
	}
	filter := v.Elem().FieldByName("metricsFilter")
	return filter.IsValid() && filter.Kind() == reflect.Func && !filter.IsNil()
}
