package leakguard

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// observed gives a function that makes caches with newCache, nil for the standard one, and lets the guard see what is read
// from them: reads of a reconcile's own object tell which kinds its controller's objects are of.
func observed(newCache cache.NewCacheFunc, objects *probes.ObjectIndex) cache.NewCacheFunc {
	if newCache == nil {
		newCache = cache.New
	}
	return func(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
		c, err := newCache(cfg, o)
		if err != nil {
			return nil, err
		}
		return &observedCache{Cache: c, objects: objects}, nil
	}
}

// observedCache notes which kinds the reconciles of a controller read their own objects from.
type observedCache struct {
	cache.Cache
	objects *probes.ObjectIndex
}

// Get implements client.Reader.
func (c *observedCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	err := c.Cache.Get(ctx, key, object, opts...)
	if err != nil {
		return err
	}
	if scope, id, ok := probes.FromContext(ctx); ok && id.Object == process.scopes.Object(key.Namespace, key.Name) {
		c.objects.Saw(scope, clientgo.KindOf(object), id.Object)
	}
	return nil
}
