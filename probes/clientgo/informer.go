package clientgo

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/leakguard/leakguard/probes"
)

// informer is a shared informer under account.
type informer struct {
	cache.SharedIndexInformer
	set  *Informers
	kind string
	from uint64 // the function that made it, 0 for none
	site probes.Site

	mu       sync.Mutex
	handlers map[cache.ResourceEventHandlerRegistration]*handler
}

// Run implements [cache.SharedInformer].
func (i *informer) Run(stop <-chan struct{}) {
	defer i.begin()()
	i.SharedIndexInformer.Run(stop)
}

// RunWithContext implements [cache.SharedInformer].
func (i *informer) RunWithContext(ctx context.Context) {
	defer i.begin()() //nolint:contextcheck // no labels at all is the point
	i.SharedIndexInformer.RunWithContext(ctx)
}

// begin counts the informer as running until end is called.
func (i *informer) begin() (end func()) {
	probes.Detach()
	removeStore := func() {}
	if objects := i.set.options.Ledger.Objects; objects != nil {
		removeStore = objects.AddStore(i.kind, StoreKeys(i.GetStore()))
	}
	i.set.mu.Lock()
	i.set.running[i] = true
	i.set.mu.Unlock()
	return func() {
		removeStore()
		i.set.mu.Lock()
		delete(i.set.running, i)
		i.set.mu.Unlock()
		i.mu.Lock()
		defer i.mu.Unlock()
		for registration, h := range i.handlers { // they end with their informer
			h.entry.Close()
			delete(i.handlers, registration)
		}
	}
}

// AddEventHandler implements [cache.SharedInformer].
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	w := i.wrap(h)
	registration, err := i.SharedIndexInformer.AddEventHandler(w)
	return i.added(w, registration, err)
}

// AddEventHandlerWithResyncPeriod implements [cache.SharedInformer].
func (i *informer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	w := i.wrap(h)
	registration, err := i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(w, resync)
	return i.added(w, registration, err)
}

// AddEventHandlerWithOptions implements [cache.SharedInformer].
func (i *informer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	w := i.wrap(h)
	registration, err := i.SharedIndexInformer.AddEventHandlerWithOptions(w, options)
	return i.added(w, registration, err)
}

// handlerKind is the handlers of all informers.
func handlerKind() *probes.Kind { return &handlersKind }

// handlersKind is never changed.
var handlersKind = probes.Kind{
	Resource: "event handlers", Closed: "removed", Trap: "S2-07a",
	Advice: "add event handlers once, when the controller is set up; or keep the registration and call RemoveEventHandler",
}

// wrap takes the site of the caller of the method it is called from.
func (i *informer) wrap(inner cache.ResourceEventHandler) *handler {
	h := &handler{inner: inner, set: i.set, kind: i.kind, site: probes.CallSite(1)}
	h.spent.start = time.Now()
	if scope := i.set.options.HandlerScope; scope != nil && !h.site.InSpan() {
		h.scope = scope(i.kind)
	}
	return h
}

// added opens the handler's account and gives client-go's own registration back, as only that can be removed again.
func (i *informer) added(h *handler, registration cache.ResourceEventHandlerRegistration, err error) (cache.ResourceEventHandlerRegistration, error) {
	if err != nil || registration == nil || !reflect.TypeOf(registration).Comparable() {
		return registration, err
	}
	h.pending = pendingOf(registration)
	h.entry = i.set.handlers.Open(context.Background(), handlerKind(), fmt.Sprintf("%s %p", i.kind, i), h.site)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers[registration] = h
	return registration, nil
}

// RemoveEventHandler implements [cache.SharedInformer].
func (i *informer) RemoveEventHandler(registration cache.ResourceEventHandlerRegistration) error {
	if err := i.SharedIndexInformer.RemoveEventHandler(registration); err != nil {
		return err
	}
	if registration == nil || !reflect.TypeOf(registration).Comparable() {
		return nil
	}
	i.mu.Lock()
	h := i.handlers[registration]
	delete(i.handlers, registration)
	i.mu.Unlock()
	if h == nil {
		return nil
	}
	h.entry.Close()
	if h.busyFor() > 0 {
		i.set.mu.Lock()
		defer i.set.mu.Unlock()
		if len(i.set.waiting) < maxWaiting {
			i.set.waiting[h] = true
		}
	}
	return nil
}

// maxWaiting bounds the removed handlers that are followed until their function returns.
const maxWaiting = 4096

// list copies the handlers.
func (i *informer) list() []*handler {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]*handler, 0, len(i.handlers))
	for _, h := range i.handlers {
		out = append(out, h)
	}
	return out
}
