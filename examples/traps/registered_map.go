package traps

import (
	"context"
	"sync"
	"time"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

// registeredMap keeps a few bytes for each object that ever was. That is far too little for the heap to tell, so the map is
// registered, and its keys are compared with the informers'.
func registeredMap() Trap {
	return Trap{
		Name: "registered-map", Row: "S2-01", Expect: ExpectAlarm, Grows: Counted, Controller: LeakyController,
		Within:  450, // ten objects go, each five minutes before its entry is stale
		Title:   "a small map by object, given to leakguard.AddProbe, keeps the entries of objects that were deleted",
		Culprit: Site{Function: "stale entries of lastSeen"},
		Leak:    withRegisteredMap(false),
		Twin:    withRegisteredMap(true),
	}
}

// lastSeen is when each object was last reconciled.
type lastSeen struct {
	mu sync.Mutex
	at map[Object]time.Time
}

// each gives the objects to a probe.
func (l *lastSeen) each(yield func(namespace, name string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for object := range l.at {
		if !yield(object.Namespace, object.Name) {
			return
		}
	}
}

func withRegisteredMap(evict bool) Start {
	return func(life context.Context, env Env) (Work, error) {
		seen := &lastSeen{at: map[Object]time.Time{}}
		if err := addProbe(life, probes.Keys("lastSeen", seen.each).For(env.Controller)); err != nil {
			return Work{}, err
		}
		return Work{Reconcile: func(_ context.Context, object Object) error {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			switch {
			case !object.Deleted:
				seen.at[object] = time.Now()
			case evict:
				object.Deleted = false
				delete(seen.at, object)
			}
			return nil
		}}, nil
	}
}

// addProbe registers a probe for as long as life.
func addProbe(life context.Context, p probes.Probe) error {
	remove, err := leakguard.AddProbe(p)
	if err == nil {
		context.AfterFunc(life, remove)
	}
	return err
}
