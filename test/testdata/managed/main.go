// Command managed is examples/minimal with the manager of leakguard, to measure what all that it instruments adds.
package main

import (
	"context"
	"log"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/leakguard"
)

func main() {
	mgr, err := leakguard.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{}, leakguard.Options{})
	if err != nil {
		log.Fatal(err)
	}
	reconciler := reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		ctrl.LoggerFrom(ctx).Info("seen", "object", request.NamespacedName)
		return ctrl.Result{}, nil
	})
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		log.Fatal(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}
