package leakguard

import (
	"errors"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Manager is a manager whose controllers are instrumented as they are added.
type Manager struct {
	manager.Manager
	guard       *Guard
	instruments *instruments
}

// Guard is the manager's guard; it starts and stops with the manager.
func (m *Manager) Guard() *Guard { return m.guard }

// Add implements manager.Manager. Each controller of reconcile.Request is instrumented before it is passed on, itself
// unwrapped: the manager looks at the types of what it runs. Other runnables, as far as the manager does not, run with
// their type as label, so that what they leak has a name.
func (m *Manager) Add(r manager.Runnable) error {
	m.guard.instrument(r)
	m.guard.noteCluster(r)
	return m.Manager.Add(labelled(r))
}

// NewManager is a drop-in for ctrl.NewManager. It instruments every controller of reconcile.Request with no change to
// it and every webhook that the builder registers, shields shared connections and informers from being taken for a
// reconcile's work, keeps account of response bodies, watches, informers and event handlers, which run in a scope of their
// kind, learns from the cache which objects live, serves the debug page on the metrics server, and adds a health check
// named "leakguard", with [Options].UnreadyOn a readiness check of the same name too.
//
// cfg and opts are not changed. What opts already holds (NewCache, Cache.NewInformer, HTTP clients, the config's transport
// wrappers) stays in force; the guard's parts are put around it. For further clusters see [Manager.Instrument], for
// work of other kinds [Scope].
func NewManager(cfg *rest.Config, opts ctrl.Options, options Options) (*Manager, error) {
	if cfg == nil {
		return nil, errors.New("leakguard: must specify Config")
	}
	g := New(options)
	if g.err != nil {
		return nil, g.err
	}
	g.noteHazards(cfg.Timeout)
	in := newInstruments(g)
	opts.Client.HTTPClient = in.client(opts.Client.HTTPClient)
	in.cache(&opts.Cache, &opts.NewCache)
	opts.WebhookServer = labelledWebhooks(opts.WebhookServer)
	mgr, err := ctrl.NewManager(in.config(cfg), opts)
	if err != nil {
		return nil, err
	}
	if err := g.wire(mgr, opts.Metrics.FilterProvider != nil); err != nil {
		return nil, err
	}
	return &Manager{Manager: mgr, guard: g, instruments: in}, nil
}

// Setup gives a manager that exists a guard, its debug page and its checks. Call it before the manager starts.
// Controllers are not instrumented, and reported so: wrap their reconcilers with [Reconciler] under the controllers' names,
// or use [NewManager].
func Setup(mgr manager.Manager, options Options) (*Guard, error) {
	g := New(options)
	if g.err != nil {
		return nil, g.err
	}
	if cfg := mgr.GetConfig(); cfg != nil {
		g.noteHazards(cfg.Timeout)
	}
	if err := g.wire(mgr, metricsAreFiltered(mgr)); err != nil {
		return nil, err
	}
	return g, nil
}

// wire adds the guard, its page and its checks to a manager.
func (g *Guard) wire(mgr manager.Manager, authenticated bool) error {
	if metricsAreOff(mgr) {
		g.addNotice("the manager's metrics server is switched off, so %s is not served", PagePath)
	}
	err := mgr.AddMetricsServerExtraHandler(PagePath, &page{guard: g, open: authenticated || g.options.DebugOpen})
	if err != nil {
		return err
	}
	g.events.Store(newEventSink(mgr.GetEventRecorder("leakguard"), mgr.GetAPIReader(), mgr.GetClient().Status(), g.addNotice))
	if err := mgr.AddHealthzCheck("leakguard", g.CheckSampling); err != nil {
		return err
	}
	if g.options.UnreadyOn != "" {
		if err := mgr.AddReadyzCheck("leakguard", g.Check); err != nil {
			return err
		}
	}
	return mgr.Add(g)
}
