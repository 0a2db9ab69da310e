package traps

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lazyInformer reads a kind that nobody watched before. The manager's cache starts an informer for it inside that first
// reconcile: about nine goroutines and a watch that carry its label and stay for ever, once.
func lazyInformer() Trap {
	return Trap{
		Name: "lazy-informer", Row: "X-4", Expect: ExpectSilent, NeedsAPI: true,
		Title: "no leak: Reconcile reads a kind for the first time, and the manager's cache starts an informer for it",
		Leak: func(_ context.Context, env Env) (Work, error) {
			return Work{Reconcile: func(ctx context.Context, object Object) error {
				key := client.ObjectKey{Namespace: object.Namespace, Name: object.Name}
				if err := env.Cache.Get(ctx, key, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil {
					return fmt.Errorf("traps: %w", err)
				}
				return nil
			}}, nil
		},
	}
}
