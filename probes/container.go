package probes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// How far a registered container must have outgrown the live objects.
const (
	// containerSlack is how many entries beyond twice the live objects are nobody's business.
	containerSlack = 100
	// staleReads is for how many reads an object must have been gone before its key is stale: five minutes at the guard's
	// default interval. A reconcile that deletes the key may have to wait in the queue for so long.
	staleReads = 30
	// staleLeaked is the least number of stale keys.
	staleLeaked = 10
	// maxKeys bounds the keys of a container that are followed, at some 20 bytes each.
	maxKeys = 1 << 16
)

// Container is a probe of a map, slice or cache of the user's own that should not outgrow the objects it is about.
type Container struct {
	name, title string
	size        func() int
	keys        func(yield func(namespace, name string) bool)
	scope       string

	mu      sync.Mutex
	objects *ObjectIndex
	chosen  bool // objects are those of Against

	reading sync.Mutex // held while the user's function runs, so nothing else waits for it
	climb   Climb
	lived   map[Object]uint16 // of the keys that are in the container and were live objects once: in how many reads they were not
	losses  uint64            // of the index at the last read
	evicts  bool              // keys have left it that were stale: it is emptied late, and not never
}

// Size gives a probe of a container's size. name is what reports call it, such as "podCache". size is called at each Read
// on another goroutine, so it must take the lock that guards the container.
//
//	probes.Size("podCache", func() int { mu.Lock(); defer mu.Unlock(); return len(podCache) })
//
// Its reading climbs when the size has risen in ten reads with no fall and no long rest between, to more than twice the live
// objects and 100: that is how a container that nobody empties looks, but a large cache that warms up slowly looks the
// same until its size has stayed as it is for twenty reads, or longer when it rose rarely. See [Climb].
func Size(name string, size func() int) *Container {
	return &Container{name: snake(name), title: name, size: size}
}

// Keys gives a probe of a container whose keys are namespaced names of objects. keys calls yield for each until that
// gives false; it must take the lock that guards the container.
//
//	probes.Keys("podCache", func(yield func(namespace, name string) bool) {
//		mu.Lock()
//		defer mu.Unlock()
//		for key := range podCache {
//			if !yield(key.Namespace, key.Name) {
//				return
//			}
//		}
//	})
//
// A key is stale when its object was once in a store of an informer, of whatever kind, and has been in none for
// thirty reads. The reading of the stale keys climbs while they become more, and never fewer, from ten on: see [Climb]. It does so
// no more once stale keys have left the container, which then is emptied late: by its age or size, or by a janitor. Keys that were
// never seen in a store say nothing: without the stale ones, they are judged by how many they are, as by [Size].
//
// A Read costs a hash for each key, and makes [ObjectIndex.Refresh] read the stores of all kinds; the first 65,536 keys are
// followed.
func Keys(name string, keys func(yield func(namespace, name string) bool)) *Container {
	return &Container{name: snake(name), title: name, keys: keys}
}

// For names the scope that the container belongs to, such as a controller: its readings carry the name, and its size is
// compared with that scope's live objects instead of all that scopes work on. Call it before the first Read.
func (c *Container) For(scope string) *Container {
	c.scope = scope
	return c
}

// Against chooses the objects to compare with. A container in a [Set] that no call of it was made for is compared with those of
// the set; in a running guard these are the objects of the manager's caches.
func (c *Container) Against(objects *ObjectIndex) *Container {
	c.compare(objects, true)
	return c
}

// compare sets the objects to compare with, unless others were chosen.
func (c *Container) compare(objects *ObjectIndex, chosen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chosen && !chosen {
		return
	}
	c.objects, c.chosen = objects, chosen
	if c.keys != nil && objects != nil {
		objects.readAll()
	}
}

// snake turns a Go name into a probe's: "podCache" gives "pod_cache", "Pods by UID" gives "pods_by_uid".
func snake(name string) string {
	var b strings.Builder
	last := '_'
	for _, r := range name {
		switch {
		case r < unicode.MaxASCII && unicode.IsUpper(r):
			if unicode.IsLower(last) || unicode.IsDigit(last) {
				b.WriteByte('_')
			}
			b.WriteRune(unicode.ToLower(r))
		case r < unicode.MaxASCII && (unicode.IsLower(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		default:
			if last != '_' {
				b.WriteByte('_')
			}
			r = '_'
		}
		last = r
	}
	return strings.TrimRight(b.String(), "_")
}

// Name implements [Probe].
func (c *Container) Name() string { return c.name }

// Read implements [Probe].
func (c *Container) Read(_ context.Context, dst []Reading) []Reading {
	c.mu.Lock()
	objects := c.objects
	c.mu.Unlock()
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.keys == nil {
		return append(dst, c.sized(objects, c.size(), 0))
	}
	total, stale := c.follow(objects)
	return c.staleKeys(append(dst, c.sized(objects, total, stale)), total, stale)
}

// sized is the reading of the container's size, of which the stale keys have one of their own: it is judged by the others.
func (c *Container) sized(objects *ObjectIndex, n, stale int) Reading {
	live, known := c.live(objects)
	beyond := n-stale > 2*live+containerSlack
	r := Reading{Resource: "entries of " + c.title, Scope: c.scope, Count: float64(n), Covariate: -1, Trap: "S2-01"}
	if known {
		r.Covariate = float64(live)
	}
	r.Shown = c.keys != nil && !beyond
	if r.Climbing = c.climb.Observe("size", n) >= Climbing && beyond; r.Climbing {
		r.Reason = fmt.Sprintf("%s has %d entries and only ever grows, with %d live objects", c.title, n, live)
		r.Advice = "delete an entry when its object is deleted, or bound the container"
	}
	return r
}

// live is how many objects the container's size is compared with.
func (c *Container) live(objects *ObjectIndex) (n int, known bool) {
	if objects == nil {
		return 0, false
	}
	if c.scope != "" {
		return objects.Live(c.scope)
	}
	n = objects.Total()
	return n, n > 0
}

// follow counts the keys and those that are stale.
func (c *Container) follow(objects *ObjectIndex) (total, stale int) {
	var keys []Object
	c.keys(func(namespace, name string) bool {
		if total++; objects != nil && len(keys) < maxKeys {
			keys = append(keys, objects.scopes.Object(namespace, name))
		}
		return true
	})
	if objects == nil {
		return total, 0
	}
	live, losses := objects.known()
	lived := make(map[Object]uint16, len(c.lived))
	for _, key := range keys {
		reads, was := c.lived[key]
		switch {
		case isLive(live, key):
			lived[key] = 0
		case was && (reads > 0 || losses == c.losses): // else it may have been in a store that is no more: nothing is known of it
			lived[key] = min(reads+1, staleReads)
		}
	}
	c.evicts = c.evicts || total <= maxKeys && hasEvicted(c.lived, keys)
	c.lived, c.losses = lived, losses
	return total, len(staleOf(lived))
}

// staleOf gives the keys whose objects have been gone for long.
func staleOf(lived map[Object]uint16) map[Object]bool {
	stale := map[Object]bool{}
	for key, reads := range lived {
		if reads == staleReads {
			stale[key] = true
		}
	}
	return stale
}

// hasEvicted reports whether a key that was stale is none of the keys any more.
func hasEvicted(lived map[Object]uint16, keys []Object) bool {
	stale := staleOf(lived)
	for _, key := range keys {
		delete(stale, key)
	}
	return len(stale) > 0
}

func isLive(live map[string]map[Object]bool, object Object) bool {
	for _, objects := range live {
		if objects[object] {
			return true
		}
	}
	return false
}

// staleKeys adds the reading of the keys that are stale, if any are.
func (c *Container) staleKeys(dst []Reading, total, stale int) []Reading {
	rises := c.climb.Observe("stale", stale)
	if stale == 0 {
		return dst
	}
	return append(dst, Reading{
		Resource: "stale entries of " + c.title, Scope: c.scope, Count: float64(stale), Covariate: -1, Trap: "S2-01",
		Climbing: !c.evicts && stale >= staleLeaked && rises >= Climbing,
		Reason:   fmt.Sprintf("%d of the %d entries of %s are of objects that were deleted long ago, and they become more", stale, total, c.title),
		Advice:   "delete an entry when its object is deleted: in the handler of the deletion, or when Get says not found",
	})
}
