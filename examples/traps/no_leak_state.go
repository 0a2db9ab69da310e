package traps

import (
	"context"
	"sync"
)

// What keeps state between reconciles and is no leak.

// emptiedMap grows a map and empties it again: its tables stay as large as they once were, and no larger.
func emptiedMap() Trap {
	return notALeak("emptied-map", "S2-01d", "a map grows to 20,000 entries and is emptied, again and again: its tables stay, but do not grow",
		func(context.Context, Env) (Work, error) {
			var mu sync.Mutex
			entries := map[int]int{}
			return onObjects(func(context.Context, Object) error {
				mu.Lock()
				defer mu.Unlock()
				for i := range 20_000 {
					entries[i] = i
				}
				for i := range 20_000 {
					delete(entries, i)
				}
				return nil
			}), nil
		})
}

// requestInField keeps the request of the last reconcile where the next one overwrites it. Without the mutex it would be
// a race, and two workers would take each other's object for theirs; a leak it is not.
func requestInField() Trap {
	return notALeak("request-in-field", "S2-10", "a reconciler keeps its request in a field: a bug when it has several workers, but it keeps one only",
		func(context.Context, Env) (Work, error) {
			var reconciler struct {
				mu      sync.Mutex
				request Object
			}
			return Work{Reconcile: func(_ context.Context, object Object) error {
				reconciler.mu.Lock()
				defer reconciler.mu.Unlock()
				reconciler.request = object
				return nil
			}}, nil
		})
}
