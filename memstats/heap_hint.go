package memstats

import (
	"strings"
	"sync"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Hint is what a telling frame in an allocation stack says about the leak. The zero Hint says nothing.
type Hint struct {
	// Name is short and stable: "timer", "context-child", "scheme".
	Name string
	// Category is that of findings.
	Category string
	// Frame is the telling frame.
	Frame frame.Frame
	// Known says what holds the memory, and Unknown what the profile cannot say.
	Known, Unknown string
	// Advice says what to do.
	Advice string
	// Trap is the reproduced trap, empty when there is none.
	Trap string
	// Once says that a healthy process has one such structure, or a few: many of them alive are made again and again.
	Once bool
}

// hintRule matches the frames of one hint: any function of the package that starts with one of the names. An empty
// package matches every package with the suffix in names.
type hintRule struct {
	pkg   string
	names []string // "Receiver.Name" or "Name", without stars and type arguments
	hint  Hint
}

// HintOf looks for a telling frame, leaf first. Every rule is tried on a frame before the next frame.
func HintOf(stack []frame.Frame) Hint {
	for _, f := range stack {
		symbol := frame.Split(f.Function)
		pkg := symbol.Package
		if i := strings.LastIndex(pkg, "/vendor/"); i >= 0 {
			pkg = pkg[i+len("/vendor/"):]
		}
		name := strings.TrimPrefix(symbol.Receiver, "*") + "." + symbol.Name
		name = strings.TrimPrefix(name, ".")
		for _, rule := range hintRules() {
			if rule.matches(pkg, name) {
				rule.hint.Frame = f
				return rule.hint
			}
		}
	}
	return Hint{}
}

func (r hintRule) matches(pkg, name string) bool {
	if pkg != r.pkg && !strings.HasPrefix(pkg, r.pkg+"/") {
		return false
	}
	for _, want := range r.names {
		if name == want || strings.HasPrefix(name, want) && strings.HasSuffix(want, ".") {
			return true
		}
	}
	return false
}

// hintRules is made once; nothing changes it.
var hintRules = sync.OnceValue(func() []hintRule { return append(standardHints(), kubernetesHints()...) })

func standardHints() []hintRule {
	return []hintRule{
		{"time", []string{"newTimer", "NewTimer", "AfterFunc", "After"}, Hint{
			Name: "timer", Category: "heap-timer", Trap: "S1-01a",
			Known: "timers that have not fired hold their function and what it captured", Unknown: "whether they will fire soon",
			Advice: "Stop timers that are no longer wanted; before Go 1.23 time.After in a loop keeps each timer until it fires.",
		}},
		{"time", []string{"newTicker", "NewTicker", "Tick"}, Hint{
			Name: "ticker", Category: "heap-timer", Trap: "S1-14d",
			Known: "tickers are kept by a live structure", Unknown: "which structure", Advice: "Stop and drop each ticker with its owner.",
		}},
		{"context", []string{"withCancel", "WithCancel", "WithCancelCause", "cancelCtx.propagateCancel", "WithDeadlineCause", "WithDeadline", "WithTimeout", "AfterFunc", "afterFuncer."}, Hint{
			Name: "context-child", Category: "heap-context-children", Trap: "S2-11c",
			Known:  "a long-lived parent context keeps each child until it is cancelled",
			Advice: "Call cancel of each context.WithCancel, WithTimeout and the stop of each AfterFunc, also on the early return.",
		}},
		{"context", []string{"WithValue"}, Hint{
			Name: "context-chain", Category: "heap-context-children", Trap: "S2-11f",
			Known: "contexts are chained onto one that is kept", Advice: "Do not store ctx = context.WithValue(ctx, …) in a field.",
		}},
		{"github.com/prometheus/client_golang/prometheus", []string{"metricMap.getOrCreateMetricWithLabels", "metricMap.getOrCreateMetricWithLabelValues", "MetricVec.GetMetricWith", "MetricVec.GetMetricWithLabelValues", "MakeLabelPairs", "makeLabelPairs"}, Hint{
			Name: "metric-vec", Category: "heap-metric-cardinality",
			Known: "a metric vector keeps one entry per set of labels", Unknown: "which labels; during warm-up this is normal",
			Advice: "Delete the label sets of objects that are gone (DeleteLabelValues, DeletePartialMatch).",
		}},
		{"internal/sync", []string{"HashTrieMap."}, Hint{
			Name: "sync-map", Category: "heap-map", Trap: "S2-01f", Known: "a sync.Map keeps its keys and values", Unknown: "which map",
			Advice: "Delete entries when their object goes; a sync.Map holds strongly.",
		}},
	}
}

func kubernetesHints() []hintRule {
	return []hintRule{
		{"k8s.io/client-go/transport", []string{"tlsTransportCache.get", "New"}, Hint{
			Name: "transport-cache", Category: "heap-k8s-client-cache", Trap: "S2-13b", Once: true,
			Known:  "client-go keeps a transport per distinct TLS configuration, and this configuration never repeats",
			Advice: "Make one client per cluster and reuse it; set no Dial or Proxy function per call, so that the cache can match.",
		}},
		{"k8s.io/client-go/util/workqueue", []string{"set.insert", "Type.Get", "Typed.Get", "Type.Add", "Typed.Add", "delayingType.AddAfter"}, Hint{
			Name: "workqueue", Category: "heap-workqueue-not-done", Known: "a workqueue's sets keep items that are queued or in process",
			Unknown: "which of the two: look at depth and unfinished work", Advice: "Call Done for each Get, also on the error path.",
		}},
		{"k8s.io/client-go/util/workqueue", []string{"TypedItemExponentialFailureRateLimiter.When", "ItemExponentialFailureRateLimiter.When"}, Hint{
			Name: "rate-limiter", Category: "heap-delayed-requeue", Trap: "X-3", Known: "the rate limiter keeps a failure count per item",
			Advice: "Call Forget when an item succeeds or its object is gone.",
		}},
		{"k8s.io/client-go/util/workqueue", []string{"waitForPriorityQueue.Push", "insert", "delayingType."}, Hint{
			Name: "delayed-requeue", Category: "heap-delayed-requeue", Known: "items wait in the delaying queue until their time",
			Advice: "Do not requeue each object with a long delay under ever new keys.",
		}},
		{"k8s.io/utils/buffer", []string{"RingGrowing.WriteOne", "TypedRingGrowing.WriteOne", "NewRingGrowing", "NewTypedRingGrowing", "NewTypedRingGrowing."}, Hint{
			Name: "listener-ring", Category: "handler-backpressure", Trap: "S2-07c",
			Known:  "an informer listener buffers notifications without a bound: its handler is slow or blocked, or handlers are added again and again",
			Advice: "Make the event handler return at once (enqueue a key); remove handlers that are no longer wanted.",
		}},
		{"k8s.io/client-go/discovery", []string{"DiscoveryClient.", "fetchServerResourcesForGroupVersions", "NewDiscoveryClientForConfig"}, discoveryHint()},
		{"github.com/google/gnostic-models", []string{"NewDocument", "ParseDocument"}, discoveryHint()},
		{"github.com/google/gnostic", []string{"NewDocument", "ParseDocument"}, discoveryHint()},
		{"k8s.io/kube-openapi", []string{"NewOpenAPIData", "Definitions.parseKind", "Definitions."}, discoveryHint()},
		{"k8s.io/kubectl/pkg/util/openapi", []string{"CachedOpenAPIGetter.OpenAPISchema", "NewOpenAPIData"}, discoveryHint()},
		{"k8s.io/client-go/restmapper", []string{"NewDiscoveryRESTMapper", "DeferredDiscoveryRESTMapper.", "GetAPIGroupResources"}, restMapperHint()},
		{"k8s.io/apimachinery/pkg/api/meta", []string{"NewDefaultRESTMapper", "DefaultRESTMapper.AddSpecific", "DefaultRESTMapper.Add"}, restMapperHint()},
		{"sigs.k8s.io/controller-runtime/pkg/client/apiutil", []string{"NewDynamicRESTMapper", "mapper."}, restMapperHint()},
		{"k8s.io/apimachinery/pkg/runtime", []string{"Scheme.AddKnownTypeWithName", "Scheme.AddKnownTypes", "NewScheme"}, Hint{
			Name: "scheme-types", Category: "heap-scheme", Trap: "S2-15", Once: true, Known: "a scheme is filled or made again and again",
			Advice: "Make one scheme at start.",
		}},
		{"k8s.io/apimachinery/pkg/runtime", []string{"Scheme.New", "UnsafeObjectConvertor"}, objectHint()},
		{"k8s.io/client-go/tools/cache", []string{"Reflector.list", "threadSafeMap."}, objectHint()},
		{"k8s.io/client-go/tools/record", []string{"NewBroadcaster", "eventBroadcasterImpl."}, Hint{
			Name: "event-broadcaster", Category: "event-broadcaster", Trap: "X-1", Once: true, Known: "an event broadcaster with its queues is made again and again",
			Advice: "Use the manager's event recorder, or call Shutdown.",
		}},
	}
}

func discoveryHint() Hint {
	return Hint{
		Name: "discovery", Category: "heap-discovery-cache", Once: true, Known: "the cluster's discovery or OpenAPI document is parsed and kept many times over",
		Advice: "Make one discovery client and one mapper per cluster and reuse them.",
	}
}

func restMapperHint() Hint {
	return Hint{
		Name: "rest-mapper", Category: "heap-restmapper", Once: true, Known: "a REST mapper with the whole discovery is made many times over",
		Advice: "Use mgr.GetRESTMapper() instead of a mapper per call.",
	}
}

func objectHint() Hint {
	return Hint{
		Name: "decoded-object", Category: "heap-attribution", Trap: "S2-01",
		Known: "decoded API objects are kept", Unknown: "by whom: the site allocates for every cache, so compare with the number of objects in the informers",
		Advice: "Look for maps and slices of your own that keep objects, old versions or &obj.Field.",
	}
}
