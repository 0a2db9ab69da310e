package clientgo

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// How far a handler may fall behind.
const (
	// pendingClimb is the least number of waiting notifications that may be a leak when it climbs: client-go's ring grows
	// beyond this for ever.
	pendingClimb = 1024
	// blockedGraces is how many times the grace one call of a handler may take: five minutes by default. What waits for a
	// server that does not answer takes minutes, and goes on.
	blockedGraces = 15
)

// handler is an event handler under account. Its calls come one at a time.
type handler struct {
	inner   cache.ResourceEventHandler
	set     *Informers
	kind    string
	site    probes.Site
	entry   *probes.Entry
	pending func() (n int, ok bool)
	scope   *probes.Scope // nil for none
	span    probes.Span   // of the call that runs now
	calls   atomic.Uint64 // begun and ended, so odd while one runs
	spent   stopwatch

	mu     sync.Mutex
	seen   uint64 // the call that ran when busyFor was asked last
	seenAt time.Time
	at     *frame.Frame // see blamed; nil as long as it is not known
}

func (h *handler) begin() {
	h.spent.begin(h.calls.Add(1))
	if h.scope != nil {
		h.span = h.scope.BeginShared()
	}
}

func (h *handler) end() {
	if h.scope != nil {
		h.span.End()
	}
	h.spent.end()
	h.calls.Add(1)
}

// busyFor is how long the call that runs now has been seen to run; 0 for none. Who calls the handler does not read the clock
// each time: two readings cost more than all else.
func (h *handler) busyFor() time.Duration {
	calls := h.calls.Load()
	if calls%2 == 0 {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if calls != h.seen {
		h.seen, h.seenAt = calls, time.Now()
	}
	return max(1, time.Since(h.seenAt))
}

// OnAdd implements [cache.ResourceEventHandler].
func (h *handler) OnAdd(o any, isInInitialList bool) {
	h.begin()
	defer h.end()
	h.inner.OnAdd(o, isInInitialList)
}

// OnUpdate implements [cache.ResourceEventHandler].
func (h *handler) OnUpdate(old, o any) {
	h.begin()
	defer h.end()
	h.inner.OnUpdate(old, o)
}

// OnDelete implements [cache.ResourceEventHandler].
func (h *handler) OnDelete(o any) {
	h.begin()
	defer h.end()
	h.inner.OnDelete(o)
}

// culprit is the user's function that is called, or where the handler was added. It fills in a reading.
func (h *handler) culprit(r *probes.Reading) { r.Stack, r.Culprit = h.site.Frames(), h.blamed() }

// blamed is culprit's frame, which is looked up once.
func (h *handler) blamed() frame.Frame {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		at := h.site.Culprit(h.set.main())
		for _, f := range functionsOf(h.inner) {
			if found := probes.FuncCulprit(f, h.set.main()); !found.IsZero() {
				at = found
				break
			}
		}
		h.at = &at
	}
	return *h.at
}

// functionsOf gives the functions that a handler of client-go's own types calls, the likeliest to be slow first.
func functionsOf(h cache.ResourceEventHandler) []any {
	switch h := h.(type) {
	case cache.ResourceEventHandlerFuncs:
		return []any{h.UpdateFunc, h.AddFunc, h.DeleteFunc}
	case *cache.ResourceEventHandlerFuncs:
		return []any{h.UpdateFunc, h.AddFunc, h.DeleteFunc}
	case cache.ResourceEventHandlerDetailedFuncs:
		return []any{h.UpdateFunc, h.AddFunc, h.DeleteFunc}
	case cache.FilteringResourceEventHandler:
		return functionsOf(h.Handler)
	case *handler:
		return functionsOf(h.inner)
	case nil:
		return nil
	}
	if m, ok := reflect.TypeOf(h).MethodByName("OnUpdate"); ok {
		return []any{m.Func.Interface()}
	}
	return nil
}

// handlerReadings gives the handlers that do not keep up: notifications wait for them, or a call does not return.
func (x *Informers) handlerReadings(dst []probes.Reading, running []*informer) []probes.Reading {
	dst = x.timeReadings(dst, running)
	start := len(dst)
	var waiting, unknown int
	for _, i := range running {
		for _, h := range i.list() {
			n, ok := h.pending()
			if !ok {
				unknown++
			}
			waiting += n
			r, behind := x.behind(h, n)
			if behind && len(dst)-start < maxReadings {
				dst = append(dst, r)
			}
		}
	}
	if waiting > 0 {
		dst = append(dst, probes.Reading{Resource: "notifications waiting for event handlers", Count: float64(waiting), Covariate: -1})
	}
	if unknown > 0 {
		dst = append(dst, probes.Reading{Resource: "event handlers whose notifications cannot be counted", Count: float64(unknown), Covariate: -1})
	}
	return dst
}

// behind judges one handler with n waiting notifications.
func (x *Informers) behind(h *handler, n int) (r probes.Reading, behind bool) {
	climbs := x.climb.Observe(fmt.Sprintf("pending %p", h), n) >= probes.Climbing
	busy := h.busyFor()
	blocked := busy >= blockedGraces*max(x.options.Ledger.Grace, 0) && busy > 0
	if n < pendingClimb && (!blocked || n == 0) {
		return r, false
	}
	r = probes.Reading{
		Resource: "notifications waiting for one event handler", Count: float64(n), Covariate: -1, Trap: "S2-07c", Climbing: climbs,
		Advice: "a handler must only put a key into a workqueue; do the work in the reconciler",
	}
	h.culprit(&r)
	r.Reason = fmt.Sprintf("%d notifications of %s, each with its objects, wait for a handler that does not keep up", n, shortKind(h.kind))
	if blocked {
		r.Reason = fmt.Sprintf("%d notifications of %s, each with its objects, wait for a handler that has not returned for %v", n, shortKind(h.kind), busy.Round(time.Second))
	}
	return r, true
}

// waitingReadings gives the handlers that were removed but have not returned: their goroutine stays until they do.
func (x *Informers) waitingReadings(dst []probes.Reading, waiting []*handler) []probes.Reading {
	byKind := map[string][]*handler{}
	for _, h := range waiting {
		if h.busyFor() >= blockedGraces*max(x.options.Ledger.Grace, 0) {
			byKind[h.kind] = append(byKind[h.kind], h)
		}
	}
	for _, kind := range sortedByCount(byKind) {
		list := byKind[kind]
		r := probes.Reading{
			Resource: "removed event handlers that do not return", Count: float64(len(list)), Covariate: -1, Leaked: true, Trap: "S2-07d",
			Reason: fmt.Sprintf("%d handlers of %s were removed while their function ran, and it has not returned since", len(list), shortKind(kind)),
			Advice: "give what blocks in the handler a context with a deadline",
		}
		list[0].culprit(&r)
		dst = append(dst, r)
	}
	return dst
}
