package leakguard

import (
	"context"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leakguard/leakguard/probes"
)

// wrapCache puts the guard's parts around the manager's cache: informers run without labels, and reads of a reconcile's
// own object tell which kinds its controller's objects are of.
func (g *Guard) wrapCache(opts *ctrl.Options) {
	newInformer := opts.Cache.NewInformer
	if newInformer == nil {
		newInformer = toolscache.NewSharedIndexInformer
	}
	opts.Cache.NewInformer = func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		i := newInformer(lw, object, resync, indexers)
		g.objects.AddStore(kindOfObject(object), storeKeys(i.GetStore()))
		return &informer{SharedIndexInformer: i}
	}
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

// kindOfObject names the kind of an object so that its informer's example and a reconcile's variable agree: the Go type,
// and for unstructured and metadata-only objects the kind that they say they are, too.
func kindOfObject(o runtime.Object) string {
	t := reflect.TypeOf(o)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := t.PkgPath() + "." + t.Name()
	switch o.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return name + " " + o.GetObjectKind().GroupVersionKind().String()
	}
	return name
}

// storeKeys lists the namespaced names in an informer's store.
func storeKeys(store toolscache.Store) probes.Store {
	return func(yield func(namespace, name string) bool) {
		for _, key := range store.ListKeys() {
			namespace, name, err := toolscache.SplitMetaNamespaceKey(key)
			if err == nil && !yield(namespace, name) {
				return
			}
		}
	}
}

// informer runs a shared informer without the labels of the reconcile that happened to ask for it first.
type informer struct{ toolscache.SharedIndexInformer }

// Run implements toolscache.SharedInformer.
func (i *informer) Run(stop <-chan struct{}) {
	probes.Detach()
	i.SharedIndexInformer.Run(stop)
}

// RunWithContext implements toolscache.SharedInformer.
func (i *informer) RunWithContext(ctx context.Context) {
	probes.Detach() //nolint:contextcheck // it is about the goroutine's labels, not the context's
	i.SharedIndexInformer.RunWithContext(ctx)
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
		c.objects.Saw(scope, kindOfObject(object), id.Object)
	}
	return nil
}
