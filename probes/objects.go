package probes

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// ObjectState says whether the object of a span still exists.
type ObjectState uint8

// What is known of an object.
const (
	// ObjectUnknown is an object that was never seen in a store of the scope's kinds, such as a synthetic key.
	ObjectUnknown ObjectState = iota
	// ObjectLive is an object that is in one of the stores.
	ObjectLive
	// ObjectGone is an object that was in one of the stores and is in none now.
	ObjectGone
)

// String gives "unknown", "live" or "gone".
func (s ObjectState) String() string {
	return [...]string{"unknown", "live", "gone"}[min(s, ObjectGone)]
}

// maxSeen bounds each generation of the objects that were seen; two generations are kept.
const maxSeen = 16_384

// ObjectIndex knows which objects of which scope exist, from the informer stores of the kinds that the scope read its
// own objects from. It holds hashes only, at most 2 × 16,384 of them; one that is crowded out becomes unknown.
//
// The zero ObjectIndex is not usable, see [NewObjectIndex].
type ObjectIndex struct {
	scopes *Scopes

	mu     sync.Mutex
	stores map[string][]*Store        // by kind
	kinds  map[string]map[string]bool // by scope: the kinds it reads its own objects from
	seen   map[ownObject]*seenObject
	older  map[ownObject]*seenObject
	live   map[string]map[Object]bool // by kind, as of the last Refresh
	counts map[string]int
	every  bool   // all kinds are read, for the keys of containers
	losses uint64 // how many stores were taken out
	before uint64 // losses at the last Refresh
}

// Store lists what an informer has, as namespaced names. It is called from [ObjectIndex.Refresh] only and must not block.
type Store func(yield func(namespace, name string) bool)

// ownObject is an object as the one a scope's span works on.
type ownObject struct {
	scope  string
	object Object
}

type seenObject struct{ goneSince time.Time }

// NewObjectIndex gives an index without stores.
func NewObjectIndex(scopes *Scopes) *ObjectIndex {
	return &ObjectIndex{
		scopes: scopes, stores: map[string][]*Store{}, kinds: map[string]map[string]bool{},
		seen: map[ownObject]*seenObject{}, older: map[ownObject]*seenObject{}, live: map[string]map[Object]bool{}, counts: map[string]int{},
	}
}

// AddStore adds an informer's store of a kind; several stores of one kind (one for each namespace) are joined. remove takes
// it out again, for an informer that has stopped.
func (x *ObjectIndex) AddStore(kind string, store Store) (remove func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	entry := &store
	x.stores[kind] = append(x.stores[kind], entry)
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		list := slices.DeleteFunc(slices.Clone(x.stores[kind]), func(s *Store) bool { return s == entry }) // Refresh may hold the old one
		if len(list) < len(x.stores[kind]) {
			x.losses++
		}
		if x.stores[kind] = list; len(list) == 0 {
			delete(x.stores, kind)
		}
	}
}

// Saw notes that a scope has found its own object in the store of a kind. From then on that kind's stores say whether
// the scope's objects live.
func (x *ObjectIndex) Saw(scope, kind string, object Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	kinds := x.kinds[scope]
	if kinds == nil {
		kinds = map[string]bool{}
		x.kinds[scope] = kinds
	}
	kinds[kind] = true
	own := ownObject{scope, object}
	if x.seen[own] != nil {
		return
	}
	o := x.older[own]
	if o == nil {
		o = &seenObject{}
	}
	delete(x.older, own)
	if len(x.seen) >= maxSeen {
		x.older, x.seen = x.seen, map[ownObject]*seenObject{}
	}
	x.seen[own] = o
}

// Refresh reads the stores of all kinds that matter and notes which seen objects have gone since. It costs a hash for
// each object in them.
func (x *ObjectIndex) Refresh(now time.Time) {
	x.mu.Lock()
	matter, stores := map[string]bool{}, map[string][]*Store{}
	for _, kinds := range x.kinds {
		for kind := range kinds {
			matter[kind], stores[kind] = true, x.stores[kind]
		}
	}
	if x.every {
		maps.Copy(stores, x.stores)
	}
	losses := x.losses
	x.mu.Unlock()

	live := make(map[string]map[Object]bool, len(stores)) // built without the lock: stores take their own
	for kind, list := range stores {
		objects := map[Object]bool{}
		for _, store := range list {
			(*store)(func(namespace, name string) bool {
				objects[x.scopes.Object(namespace, name)] = true
				return true
			})
		}
		live[kind] = objects
	}

	x.mu.Lock()
	defer x.mu.Unlock()
	x.live, x.before = live, losses
	for kind := range matter {
		x.counts[kind] = len(live[kind])
	}
	for _, generation := range []map[ownObject]*seenObject{x.seen, x.older} {
		for own, o := range generation {
			o.note(x.liveLocked(own) || x.blindLocked(own.scope), now)
		}
	}
}

func (o *seenObject) note(live bool, now time.Time) {
	switch {
	case live:
		o.goneSince = time.Time{}
	case o.goneSince.IsZero():
		o.goneSince = now
	}
}

// liveLocked reports whether any kind of the scope has the object.
func (x *ObjectIndex) liveLocked(own ownObject) bool {
	for kind := range x.kinds[own.scope] {
		if x.live[kind][own.object] {
			return true
		}
	}
	return false
}

// blindLocked reports whether a kind of the scope has no store any more: its objects are unknown, not gone.
func (x *ObjectIndex) blindLocked(scope string) bool {
	for kind := range x.kinds[scope] {
		if len(x.stores[kind]) == 0 {
			return true
		}
	}
	return false
}

// State says whether the object of a scope lives, as of the last [ObjectIndex.Refresh]. since is when it was first found
// gone, and zero otherwise.
func (x *ObjectIndex) State(scope string, object Object) (state ObjectState, since time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	own := ownObject{scope, object}
	if x.liveLocked(own) {
		return ObjectLive, time.Time{}
	}
	o := x.seen[own]
	if o == nil {
		o = x.older[own]
	}
	if o == nil || o.goneSince.IsZero() {
		return ObjectUnknown, time.Time{}
	}
	return ObjectGone, o.goneSince
}

// Live is how many objects of the scope's kinds the stores had at the last Refresh; ok is false when the scope has
// not read an object of its own yet.
func (x *ObjectIndex) Live(scope string) (n int, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for kind := range x.kinds[scope] {
		n += x.counts[kind]
		ok = true
	}
	return n, ok
}

// Total is how many objects all stores that matter had at the last Refresh.
func (x *ObjectIndex) Total() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for _, c := range x.counts {
		n += c
	}
	return n
}

// readAll makes Refresh read the stores of all kinds from now on.
func (x *ObjectIndex) readAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.every = true
}

// known gives the objects of all stores by kind, as of the last Refresh, and how many stores had been taken out before that. The
// maps are the index's, which does not change them any more.
func (x *ObjectIndex) known() (live map[string]map[Object]bool, losses uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.live, x.before
}
