package leakguard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/leakguard/leakguard/probes"
)

// ErrSecondGuard is Start's error when another Guard is running in the process: each would report every leak.
var ErrSecondGuard = errors.New("leakguard: another guard is running in this process")

// Guard samples the process it runs in and reports what leaks. It is a manager.Runnable that runs on every replica,
// leader or not, and a healthz.Checker's method set (Check).
//
// All methods may be called concurrently, before Start and after it too.
type Guard struct {
	options  Options
	err      error // why Start must fail
	timing   timing
	objects  *probes.ObjectIndex
	breakers *breakers
	events   atomic.Pointer[eventSink]
	webhooks atomic.Pointer[webhook.Server] // of the manager; nil when nobody has asked for it
	log      logr.Logger
	report   atomic.Pointer[Report]
	sampled  atomic.Int64 // when the last tick completed, in Unix nanoseconds
	started  atomic.Int64

	mu          sync.Mutex
	controllers map[string]bool // by name: instrumented or not
	notices     []string
}

var (
	_ manager.Runnable               = (*Guard)(nil)
	_ manager.LeaderElectionRunnable = (*Guard)(nil)
)

// New gives a Guard that does nothing until Start. An option that cannot be used is Start's error, so that the result can
// go straight into mgr.Add.
func New(options Options) *Guard {
	g := &Guard{options: options, controllers: map[string]bool{}, objects: probes.NewObjectIndex(process.scopes)}
	g.options.setDefaults()
	g.err = g.options.validate()
	g.timing = newTiming(&g.options)
	g.breakers = newBreakers(g.options.Breaker, g.timing)
	if g.options.Registerer == nil {
		g.options.Registerer = metrics.Registry
	}
	g.log = g.options.Logger
	if g.log.IsZero() {
		g.log = ctrllog.Log.WithName("leakguard")
	}
	g.report.Store(&Report{Schema: FindingSchema, Findings: []Finding{}, Controllers: []ControllerReport{}})
	return g
}

// NeedLeaderElection is false: a replica that waits for the lease can leak too.
func (g *Guard) NeedLeaderElection() bool { return false }

// Start samples until ctx ends, and returns only when everything it began has returned. Its error is for misuse only (a
// bad option, ErrSecondGuard, metrics that cannot be registered), for an error ends the whole manager. A Guard may be started again
// after it has stopped.
func (g *Guard) Start(ctx context.Context) error {
	if g.err != nil {
		return g.err
	}
	if !process.guard.CompareAndSwap(nil, g) {
		return ErrSecondGuard
	}
	defer g.breakers.release()
	defer process.guard.Store(nil)
	process.resources.SetOptions(g.ledger())
	defer process.resources.SetOptions(probes.LedgerOptions{Scopes: process.scopes})
	process.transports.SetScopes(process.scopes)
	for _, p := range append(slices.Clip(g.options.Probes), probes.NewProcess(), process.resources, process.transports) {
		remove, err := process.probes.Add(p)
		if err != nil {
			return fmt.Errorf("%w: Probes: %w", ErrOptions, err)
		}
		defer remove()
	}
	process.probes.Against(g.objects)
	defer process.probes.Against(nil)
	process.scopes.SetLowCardinality(g.options.LowCardinality)
	defer process.scopes.SetLowCardinality(false)
	collector := g.Collector()
	if err := g.options.Registerer.Register(collector); err != nil {
		return fmt.Errorf("leakguard: register metrics: %w", err)
	}
	defer g.options.Registerer.Unregister(collector)
	g.started.Store(time.Now().UnixNano())
	g.noteHazards(0)
	g.setCondition(time.Now()) // an earlier container of the Pod may have left another one
	defer g.events.Load().start(ctx)()
	newSampler(g, process.probes).run(ctx)
	return nil
}

// Report gives what the guard knows as of the last tick. The result is shared and must not be changed.
func (g *Guard) Report() *Report { return g.report.Load() }

// Collector gives a collector of the guard's metrics, for a registry other than the one that Start registers in. A
// scrape reads the last report and never samples.
func (g *Guard) Collector() prometheus.Collector { return collector{g} }

// ledger is how the guard's ledgers judge.
func (g *Guard) ledger() probes.LedgerOptions {
	return probes.LedgerOptions{Scopes: process.scopes, Objects: g.objects, MainModule: g.options.MainModule, Grace: g.timing.grace}
}

// cgroupLimit reads the memory limit of the container. It is a variable for the tests, which cannot set one.
var cgroupLimit = memlimit.FromCgroup

// noteHazards keeps a notice for each setting that makes or hides leaks. restTimeout is that of a
// configuration that watches, 0 when it is not known.
func (g *Guard) noteHazards(restTimeout time.Duration) {
	settings := probes.CurrentSettings(cgroupLimit)
	settings.RESTTimeout = restTimeout
	for _, n := range probes.Hazards(settings) {
		g.addNotice("%s: %s; %s", n.ID, n.Reason, n.Advice)
	}
}

// addNotice keeps a sentence for the report and logs it; the same sentence is kept once.
func (g *Guard) addNotice(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.notices) < maxNotices && !slices.Contains(g.notices, text) {
		g.notices = append(g.notices, text)
		g.log.Info("notice", "notice", text)
	}
}

// noteProbes says once of each probe that it cannot be relied on.
func (g *Guard) noteProbes(stats []probes.SetStats) {
	for i := range stats {
		switch st := &stats[i]; {
		case st.Off:
			g.addNotice("probe %s has panicked and is switched off: %s", st.Probe, st.Reason)
		case st.Late > 0:
			g.addNotice("probe %s has taken too long: what it counts is missing from samples", st.Probe)
		}
	}
}

// maxNotices bounds the notices of a guard.
const maxNotices = 64

// noteController remembers a controller and whether its reconciles carry labels.
func (g *Guard) noteController(name string, instrumented bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.controllers[name] = g.controllers[name] || instrumented
}
