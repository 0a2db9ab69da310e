package leakguard

import (
	"net/http"
	"slices"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// instruments are the parts of a guard that go around the configuration and the cache of a cluster.
type instruments struct {
	objects   *probes.ObjectIndex
	transport *probes.Transport
	informers *clientgo.Informers
}

// newInstruments makes the parts, and gives them to the guard as probes.
func newInstruments(g *Guard) *instruments {
	ledger := g.ledger()
	in := &instruments{
		objects: g.objects, transport: probes.NewTransport(ledger), informers: clientgo.NewInformers(clientgo.InformersOptions{Ledger: ledger, HandlerScope: handlerScope}),
	}
	g.options.Probes = append(slices.Clip(g.options.Probes), in.transport, in.informers)
	return in
}

// Instrument puts the guard's parts around the configuration and the options of another cluster, as NewManager does with
// the manager's own. The result goes to cluster.New, the option after those that set a NewCache, a Cache.NewInformer or an
// HTTPClient, which stay in force:
//
//	cfg, instrumented := mgr.Instrument(cfg)
//	other, err := cluster.New(cfg, instrumented)
//	// ...
//	err = mgr.Add(other)
//
// A cluster without it works as ever: what its clients and informers leave behind is then found by growth only, and a notice
// says so when it is added to the manager. cfg is
// not changed. It may be called at any time, also after the start, and for any number of clusters: they share
// two probes.
func (m *Manager) Instrument(cfg *rest.Config) (*rest.Config, cluster.Option) {
	if cfg != nil {
		m.guard.noteHazards(cfg.Timeout)
	}
	return m.instruments.config(cfg), func(o *cluster.Options) {
		o.HTTPClient = m.instruments.client(o.HTTPClient)
		o.Client.HTTPClient = m.instruments.client(o.Client.HTTPClient)
		m.instruments.cache(&o.Cache, &o.NewCache)
	}
}

// noteCluster says of a cluster that its cache is not one that Instrument's option was put around.
func (g *Guard) noteCluster(r manager.Runnable) {
	c, ok := r.(cluster.Cluster)
	if _, isManager := r.(manager.Manager); !ok || isManager {
		return
	}
	if _, observed := c.GetCache().(*observedCache); observed || c.GetConfig() == nil {
		return
	}
	g.addNotice("the cluster at %s is not instrumented: make it with the configuration and the option of Manager.Instrument", c.GetConfig().Host)
}

// config gives a copy of a configuration whose transports are shielded and kept account of; nil for nil.
func (in *instruments) config(cfg *rest.Config) *rest.Config {
	if cfg == nil {
		return nil // whoever gets it says what is wrong
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(in.wrap)
	return cfg
}

// cache keeps account of a cache's informers and lets the guard see what is read from it.
func (in *instruments) cache(o *cache.Options, newCache *cache.NewCacheFunc) {
	o.HTTPClient = in.client(o.HTTPClient)
	o.NewInformer = in.informers.NewInformer(o.NewInformer)
	*newCache = observed(*newCache, in.objects)
}

// client does for an HTTP client that options bring along what config does for those that are made; nil for nil.
func (in *instruments) client(c *http.Client) *http.Client {
	if c == nil {
		return nil
	}
	wrapped := *c
	wrapped.Transport = in.wrap(c.Transport)
	return &wrapped
}

// wrap leaves alone what it has wrapped before.
func (in *instruments) wrap(rt http.RoundTripper) http.RoundTripper {
	return in.transport.Wrap(probes.Shield(rt))
}
