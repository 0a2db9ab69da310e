package leakguard

import (
	"sync/atomic"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// process is what belongs to the process and cannot belong to a Guard: goroutine labels are read from all goroutines of
// the process, so the reconciles in flight are counted for all managers together, and two guards would each report
// every leak.
var process = struct {
	scopes     *probes.Scopes
	probes     *probes.Set           // those of the guard that is running, and those of AddProbe
	guard      atomic.Pointer[Guard] // the one that is running
	resources  *clientgo.Resources
	transports *clientgo.TransportCache
}{
	scopes: probes.NewScopes(), probes: newSet(), resources: clientgo.NewResources(probes.LedgerOptions{}),
	transports: clientgo.HookTransportCache(""), // now, as client-go reads the hook without a lock
}

// newSet gives a set without probes, of which none can be wrong.
func newSet() *probes.Set {
	set, err := probes.NewSet(0)
	if err != nil {
		panic(err)
	}
	return set
}

// Scope gives the scope with this name for work that no manager wraps: HTTP handlers with [probes.Handler], callbacks with
// [probes.Func], and whatever else must leave no goroutine behind with [probes.Scope.Do]. In reports, metrics and findings it
// stands among the controllers. There is no bound on names: they are for kinds of work, not for objects.
func Scope(name string) *probes.Scope { return process.scopes.Scope(name) }

// AddProbe gives a probe to the guard of the process, the one that runs now or the next that starts, until remove is called; it may
// be called at any time. It is for what a controller makes when it is set up:
//
//	remove, err := leakguard.AddProbe(probes.Keys("podCache", r.podKeys).For("pod"))
//
// A container of [probes.Size] or [probes.Keys] is compared with the objects in the caches of the manager of [NewManager]. The
// error wraps [probes.ErrSet]: the probe is nil, or its name is bad or in use. Those that are known when the guard is made may
// stand in [Options].Probes.
func AddProbe(p probes.Probe) (remove func(), err error) { return process.probes.Add(p) }

// Resources gives the process's account of workqueues, watches and event broadcasters that the user's own code makes. It may be
// used at any time, and the guard knows it without more ado. What is passed through it counts, for the reconcile or the [Scope] of
// ctx and for the place of the call, until it is stopped or shut down:
//
//	queue := clientgo.Queue(ctx, leakguard.Resources(), workqueue.NewTypedRateLimitingQueue(limiter))
//	broadcaster := leakguard.Resources().Broadcaster(ctx, record.NewBroadcaster())
//	w = leakguard.Resources().Watch(ctx, w)
//
// The rate limiters of instrumented controllers are in it by themselves. Their queues need not be: the controller calls Done for
// each item, and a reconcile that does not return is found in flight.
func Resources() *clientgo.Resources { return process.resources }
