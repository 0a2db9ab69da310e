package traps

import "context"

// heapMap keeps every Pod that was ever seen. Nothing waits anywhere: only the live heap tells.
func heapMap() Trap {
	return Trap{
		Name: "heap-map", Row: "S2-01", Expect: ExpectAlarm, Grows: Heap,
		Title:   "a map of Pods by UID gets the Pods of each rollout and is never cleared of the ones that are gone",
		Culprit: siteOf(newPod, ""),
		Leak:    cachePods(false),
		Twin:    cachePods(true),
	}
}

func cachePods(evict bool) Start {
	return func(context.Context, Env) (Work, error) {
		return Work{Reconcile: newPodCache(evict).rollout}, nil
	}
}
