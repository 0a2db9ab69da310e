package clientgo

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/leakguard/leakguard/probes"
)

// InformersName is the name of [Informers] as a probe.
const InformersName = "informers"

// InformersOptions are the parts of [Informers] that have defaults.
type InformersOptions struct {
	// Ledger tells spans, objects and the grace. Its Objects also learn which objects exist from the informers' stores.
	Ledger probes.LedgerOptions
	// Kind names the kind of an informer's example object, the way that [probes.ObjectIndex.Saw] is told it. Nil: [KindOf].
	Kind func(object runtime.Object) string
	// HandlerScope gives the scope that the handlers of a kind run in, so that the goroutines they start are known for
	// theirs. Each event then costs what a span of low cardinality does. A handler that is added inside a span keeps the
	// labels of that, which tell more. Nil, or a nil scope: they run without labels.
	HandlerScope func(kind string) *probes.Scope
}

// NewInformerFunc makes an informer; it is the type of a manager's cache.Options.NewInformer.
type NewInformerFunc = func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// Informers keeps account of informers and their event handlers. It is a [probes.Probe].
type Informers struct {
	options  InformersOptions
	handlers *probes.Ledger
	made     atomic.Uint64
	makers   atomic.Uint64
	climb    probes.Climb

	mu      sync.Mutex
	running map[*informer]bool
	waiting map[*handler]bool // removed while their function had not returned
}

// NewInformers gives an account without informers.
func NewInformers(options InformersOptions) *Informers {
	if options.Kind == nil {
		options.Kind = KindOf
	}
	if options.Ledger.Grace == 0 {
		options.Ledger.Grace = probes.DefaultGrace
	}
	return &Informers{
		options: options, handlers: probes.NewLedger(InformersName, options.Ledger),
		running: map[*informer]bool{}, waiting: map[*handler]bool{},
	}
}

// KindOf names the kind of an object: its Go type, and for an object that carries its kind that, too.
func KindOf(o runtime.Object) string {
	if o == nil {
		return "unknown"
	}
	t := reflect.TypeOf(o)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := t.PkgPath() + "." + t.Name()
	if _, ok := o.(*unstructured.Unstructured); ok || t.Name() == "PartialObjectMetadata" {
		name += " " + o.GetObjectKind().GroupVersionKind().String()
	}
	return name
}

// NewInformer gives a function that makes informers with base and keeps account of them. Each function is for one cache, such
// as that of one cluster: informers of one kind are several only within it. A nil base is [cache.NewSharedIndexInformer].
func (x *Informers) NewInformer(base NewInformerFunc) NewInformerFunc {
	if base == nil {
		base = cache.NewSharedIndexInformer
	}
	from := x.makers.Add(1)
	return func(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		return x.wrap(x.options.Kind(object), base(lw, object, resync, indexers), from, probes.CallSite(1))
	}
}

// Wrap keeps account of an informer of a kind. It is counted while it runs, and it runs without labels, as it serves the
// whole process although it may have been asked for first inside a reconcile.
func (x *Informers) Wrap(kind string, i cache.SharedIndexInformer) cache.SharedIndexInformer {
	return x.wrap(kind, i, 0, probes.CallSite(1))
}

func (x *Informers) wrap(kind string, i cache.SharedIndexInformer, from uint64, site probes.Site) cache.SharedIndexInformer {
	x.made.Add(1)
	return &informer{SharedIndexInformer: i, set: x, kind: kind, from: from, handlers: map[cache.ResourceEventHandlerRegistration]*handler{}, site: site}
}

// StoreKeys lists the namespaced names in an informer's store.
func StoreKeys(store cache.Store) probes.Store {
	return func(yield func(namespace, name string) bool) {
		for _, key := range store.ListKeys() {
			namespace, name, err := cache.SplitMetaNamespaceKey(key)
			if err == nil && !yield(namespace, name) {
				return
			}
		}
	}
}

// informersClimb is the least number of informers of one kind and cache that may be a leak when it climbs.
const informersClimb = 4

// Name implements [probes.Probe].
func (x *Informers) Name() string { return InformersName }

// Read implements [probes.Probe]: informers running, their handlers and those left behind, and the handlers that do not
// keep up with their events.
func (x *Informers) Read(ctx context.Context, dst []probes.Reading) []probes.Reading {
	x.mu.Lock()
	running := make([]*informer, 0, len(x.running))
	for i := range x.running {
		running = append(running, i)
	}
	waiting := make([]*handler, 0, len(x.waiting))
	for h := range x.waiting {
		if h.busyFor() == 0 {
			delete(x.waiting, h)
			continue
		}
		waiting = append(waiting, h)
	}
	x.mu.Unlock()
	if x.made.Load() > 0 {
		dst = append(dst, probes.Reading{Resource: "informers", Count: float64(len(running)), Covariate: -1})
	}
	dst = x.kindReadings(dst, running)
	dst = x.handlers.Read(ctx, dst)
	dst = x.handlerReadings(dst, running)
	dst = x.waitingReadings(dst, waiting)
	x.climb.EndRound()
	return dst
}

// kindReadings gives the number of informers of each kind, with its judgement where there are several.
func (x *Informers) kindReadings(dst []probes.Reading, running []*informer) []probes.Reading {
	kinds := map[string][]*informer{}
	for _, i := range running {
		kinds[i.kind] = append(kinds[i.kind], i)
	}
	objects := x.objects()
	for _, kind := range sortedByCount(kinds) {
		list := kinds[kind]
		caches, most, climbs := x.climbing(kind, list)
		n := float64(len(list))
		r := probes.Reading{Resource: "informers of " + shortKind(kind), Count: n, Covariate: objects}
		if caches > 1 {
			r.Covariate = max(objects, float64(caches)) // one for each
		}
		if most > 1 {
			sample := list[0].site
			r.Climbing = climbs && n > objects
			r.Culprit, r.Stack, r.Trap = sample.Culprit(x.main()), sample.Frames(), "S1-04"
			r.Reason = fmt.Sprintf("%v informers of %s run at once and their number keeps growing: their stop channels are not closed", n, shortKind(kind))
			r.Advice = "share one informer, or cancel each cache's and factory's context with the work that started it"
		}
		dst = append(dst, r)
	}
	return dst
}

// climbing gives how many caches have informers of a kind, how many the one with the most has, and whether those of one
// climb.
func (x *Informers) climbing(kind string, list []*informer) (caches, most int, climbs bool) {
	counts := map[uint64]int{}
	for _, i := range list {
		counts[i.from]++
	}
	for from, n := range counts {
		if most = max(most, n); n > 1 {
			rises := x.climb.Observe(fmt.Sprint("kind ", from, " ", kind), n)
			climbs = climbs || (rises >= probes.Climbing && n >= informersClimb)
		}
	}
	return len(counts), most, climbs
}

// objects is how many objects live, -1 when unknown.
func (x *Informers) objects() float64 {
	if x.options.Ledger.Objects == nil {
		return -1
	}
	if n := x.options.Ledger.Objects.Total(); n > 0 {
		return float64(n)
	}
	return -1
}

func (x *Informers) main() string { return x.handlers.Options().MainModule }

// maxReadings bounds the readings of each sort.
const maxReadings = 64

// sortedByCount gives the keys with the longest lists, at most maxReadings.
func sortedByCount[V any](lists map[string][]V) []string {
	keys := make([]string, 0, len(lists))
	for key := range lists {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(lists[b]), len(lists[a])), cmp.Compare(a, b))
	})
	return keys[:min(len(keys), maxReadings)]
}

// shortKind is a kind without the path of its package: "v1.Pod".
func shortKind(kind string) string { return kind[strings.LastIndexByte(kind, '/')+1:] }
