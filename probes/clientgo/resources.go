package clientgo

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"

	"github.com/leakguard/leakguard/probes"
)

// ResourcesName is the name of [Resources] as a probe.
const ResourcesName = "clientgo"

// Resources keeps account of what is passed through its functions: watches, event broadcasters and workqueues that must
// be stopped or shut down by whoever made them. It is a [probes.Probe].
type Resources struct {
	ledger *probes.Ledger
	climb  probes.Climb

	mu     sync.Mutex
	queues map[*followed]bool
}

// NewResources gives an account without resources.
func NewResources(options probes.LedgerOptions) *Resources {
	return &Resources{ledger: probes.NewLedger(ResourcesName, options), queues: map[*followed]bool{}}
}

// SetOptions judges everything, also what is open, by other options from now on.
func (x *Resources) SetOptions(options probes.LedgerOptions) { x.ledger.SetOptions(options) }

// resourceKinds is what a Resources counts. It is never changed.
var resourceKinds = struct{ watch, broadcaster, queue probes.Kind }{
	watch: probes.Kind{
		Resource: "watch interfaces", Closed: "stopped", Trap: "S2-16",
		Advice: "call Stop by defer: a cancelled context alone leaves the goroutine that decodes the stream",
	},
	broadcaster: probes.Kind{
		Resource: "event broadcasters", Closed: "shut down", Trap: "X-1",
		Advice: "make one broadcaster for the process, such as the manager's GetEventRecorderFor, or call Shutdown by defer",
	},
	queue: probes.Kind{
		Resource: "workqueues", Closed: "shut down", Trap: "X-2",
		Advice: "make one workqueue for the controller, or call ShutDown by defer",
	},
}

// Name implements [probes.Probe].
func (x *Resources) Name() string { return ResourcesName }

// Watch keeps account of a watch until it is stopped. ctx tells the span that opened it. A watch over HTTP is already
// counted by [probes.Transport] when its client's transport is wrapped; this is for others, and for certainty about Stop.
func (x *Resources) Watch(ctx context.Context, w watch.Interface) watch.Interface {
	if w == nil {
		return nil
	}
	return &watched{Interface: w, entry: x.ledger.Open(ctx, &resourceKinds.watch, "", probes.CallSite(1))}
}

type watched struct {
	watch.Interface
	entry *probes.Entry
}

// Stop implements [watch.Interface].
func (w *watched) Stop() {
	w.entry.Close()
	w.Interface.Stop()
}

// Broadcaster keeps account of an event broadcaster until it is shut down.
func (x *Resources) Broadcaster(ctx context.Context, b record.EventBroadcaster) record.EventBroadcaster {
	return &broadcaster{EventBroadcaster: b, entry: x.ledger.Open(ctx, &resourceKinds.broadcaster, "", probes.CallSite(1))}
}

type broadcaster struct {
	record.EventBroadcaster
	entry *probes.Entry
}

// Shutdown implements [record.EventBroadcaster].
func (b *broadcaster) Shutdown() {
	b.entry.Close()
	b.EventBroadcaster.Shutdown()
}

// EventsBroadcaster is Broadcaster for the broadcasters of events.k8s.io.
func (x *Resources) EventsBroadcaster(ctx context.Context, b events.EventBroadcaster) events.EventBroadcaster {
	return &eventsBroadcaster{EventBroadcaster: b, entry: x.ledger.Open(ctx, &resourceKinds.broadcaster, "", probes.CallSite(1))}
}

type eventsBroadcaster struct {
	events.EventBroadcaster
	entry *probes.Entry
}

// Shutdown implements [events.EventBroadcaster].
func (b *eventsBroadcaster) Shutdown() {
	b.entry.Close()
	b.EventBroadcaster.Shutdown()
}
