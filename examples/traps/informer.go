package traps

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// informerParts are the goroutines of an informer's watch.
func informerParts() []string {
	return append(watchParts(), "context.(*cancelCtx).propagateCancel.func2")
}

// informerStop makes an informer per rollout whose stop channel nobody closes.
func informerStop() Trap {
	return Trap{
		Name: "informer-stop", Row: "S1-04", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted, Controller: LeakyController,
		Rules:   []string{"accounting", "orphaned", "object-gone"},
		Title:   "Reconcile runs an informer whose stop channel is never closed: eight goroutines, a watch and a store each",
		Culprit: siteOf(runInformer, ".func1"), Parts: informerParts(),
		Leak: watching(nil, leakInformerStop),
		Twin: watching(nil, cleanInformerStop),
	}
}

func leakInformerStop(_ context.Context, c dynamic.Interface, object Object) error {
	runInformer(c, object, make(chan struct{}))
	return nil
}

func cleanInformerStop(ctx context.Context, c dynamic.Interface, object Object) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	runInformer(c, object, ctx.Done())
	return nil
}

func runInformer(c dynamic.Interface, object Object, stop <-chan struct{}) {
	informer := dynamicinformer.NewFilteredDynamicInformer(c, configMaps, object.Namespace, 0, nil, nil).Informer()
	go func() {
		informer.Run(stop)
	}()
}

// informerRestart starts a new informer factory at each rollout and does not stop the one before.
func informerRestart() Trap {
	return Trap{
		Name: "informer-restart", Row: "S2-09", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted, Controller: LeakyController,
		Rules:   []string{"accounting", "orphaned", "object-gone"},
		Title:   "Reconcile starts a new informer factory to pick up a change and does not stop the old one",
		Culprit: Site{Function: "k8s.io/client-go/dynamic/dynamicinformer.(*dynamicSharedInformerFactory).Start.func1"}, Parts: informerParts(),
		Leak: watching(nil, leakInformerRestart),
		Twin: watching(nil, cleanInformerRestart),
	}
}

func leakInformerRestart(_ context.Context, c dynamic.Interface, object Object) error {
	startFactory(c, object, make(chan struct{}))
	return nil
}

func cleanInformerRestart(_ context.Context, c dynamic.Interface, object Object) error {
	stop := make(chan struct{})
	factory := startFactory(c, object, stop)
	close(stop)
	factory.Shutdown()
	return nil
}

func startFactory(c dynamic.Interface, object Object, stop <-chan struct{}) dynamicinformer.DynamicSharedInformerFactory {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c, 0, object.Namespace, nil)
	factory.ForResource(configMaps)
	factory.Start(stop)
	return factory
}

// cachePerTenant starts a cache for each tenant and never ends one.
func cachePerTenant() Trap {
	return Trap{
		Name: "cache-per-tenant", Row: "X-5", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted, Controller: LeakyController,
		Rules:   []string{"accounting", "orphaned", "object-gone"},
		Title:   "Reconcile makes and starts a cache of its own for a tenant, with a context that nobody cancels",
		Culprit: siteOf(startTenantCache, ".func1"), Parts: append(informerParts(),
			"sigs.k8s.io/controller-runtime/pkg/cache/internal.(*Informers).Start", "sigs.k8s.io/controller-runtime/pkg/cache.(*multiNamespaceCache).Start.func1"),
		Leak: perTenant(func(context.Context) (context.Context, context.CancelFunc) { return context.Background(), func() {} }),
		Twin: perTenant(context.WithCancel),
	}
}

func perTenant(life func(context.Context) (context.Context, context.CancelFunc)) Start {
	return func(_ context.Context, env Env) (Work, error) {
		return Work{Reconcile: func(ctx context.Context, object Object) error {
			if object.Deleted {
				return nil
			}
			ctx, cancel := life(ctx)
			defer cancel()
			return startTenantCache(ctx, env, object)
		}}, nil
	}
}

func startTenantCache(ctx context.Context, env Env, object Object) error {
	tenant, err := cache.New(env.Config, cache.Options{
		DefaultNamespaces: map[string]cache.Config{object.Namespace: {}}, Scheme: env.Client.Scheme(), Mapper: env.Client.RESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("traps: %w", err)
	}
	go func() {
		_ = tenant.Start(ctx)
	}()
	key := client.ObjectKey{Namespace: object.Namespace, Name: object.Name}
	return client.IgnoreNotFound(tenant.Get(ctx, key, &corev1.ConfigMap{}))
}
