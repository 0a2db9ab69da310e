package leakguard

import (
	"context"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// wrapCache puts the guard's parts around the manager's cache: informers are accounted for and run without labels, and
// reads of a reconcile's own object tell which kinds its controller's objects are of.
func (g *Guard) wrapCache(opts *ctrl.Options, informers *clientgo.Informers) {
	opts.Cache.NewInformer = informers.NewInformer(opts.Cache.NewInformer)
	newCache := opts.NewCache
	if newCache == nil {
		newCache = cache.New
	}
	opts.NewCache = func(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
		c, err := newCache(cfg, o)
		if err != nil {
			return nil, err
		}
		return &observedCache{Cache: c, objects: g.objects}, nil
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
