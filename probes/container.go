package probes

import (
	"context"
	"fmt"
	"strings"
	"unicode"
)

// How far a registered container must have outgrown the live objects.
const (
	// containerRises is in how many reads its size must have risen without a fall: a cache that warms up takes fewer.
	containerRises = 10
	// containerSlack is how many entries beyond twice the live objects are nobody's business.
	containerSlack = 100
	// staleLeaked is the least number of keys of objects that are gone.
	staleLeaked = 10
)

// Container is a probe of a map, slice or cache of the user's own that should not outgrow the objects it is about.
type Container struct {
	name, title string
	size        func() int
	keys        func(yield func(namespace, name string) bool)
	objects     *ObjectIndex
	scope       string
	climb       Climb
}

// Size gives a probe of a container's size. name is what reports call it, such as "podCache". size is called at each Read
// on another goroutine, so it must take the lock that guards the container.
//
//	probes.Size("podCache", func() int { mu.Lock(); defer mu.Unlock(); return len(podCache) })
//
// Its reading climbs when the size has risen in ten reads with no fall between, to more than twice the live objects and
// 100: that is how a container that nobody empties looks, but a large cache that warms up slowly looks the same.
func Size(name string, size func() int) *Container {
	return &Container{name: snake(name), title: name, size: size}
}

// Keys gives a probe of a container whose keys are namespaced names of objects. keys calls yield for each until that
// gives false; it must take the lock that guards the container. Keys of objects that live in none of the stores that
// [Container.Against] names are stale; stale keys that climb to ten and more are leaked.
func Keys(name string, keys func(yield func(namespace, name string) bool)) *Container {
	return &Container{name: snake(name), title: name, keys: keys}
}

// Against names the objects to compare with: the live ones of a scope, or of all scopes for "". Call it before the first Read.
func (c *Container) Against(objects *ObjectIndex, scope string) *Container {
	c.objects, c.scope = objects, scope
	return c
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
	live, known := c.live()
	r := Reading{Resource: "entries of " + c.title, Scope: c.scope, Covariate: -1, Trap: "S2-01"}
	if known {
		r.Covariate = float64(live)
	}
	if c.keys != nil {
		return c.readKeys(dst, r, known)
	}
	n := c.size()
	r.Count = float64(n)
	r.Climbing = c.climb.Observe("size", n) >= containerRises && n > 2*live+containerSlack
	if r.Climbing {
		r.Reason = fmt.Sprintf("%s has %d entries and only ever grows, with %d live objects", c.title, n, live)
		r.Advice = "delete an entry when its object is deleted, or bound the container"
	}
	return append(dst, r)
}

// readKeys counts the keys and those of no live object.
func (c *Container) readKeys(dst []Reading, r Reading, known bool) []Reading {
	total, stale := 0, 0
	c.keys(func(namespace, name string) bool {
		total++
		if known && !c.objects.has(c.scope, namespace, name) {
			stale++
		}
		return true
	})
	r.Count = float64(total)
	dst = append(dst, r)
	rises := c.climb.Observe("stale", stale)
	if stale == 0 {
		return dst
	}
	r.Resource, r.Count = "stale entries of "+c.title, float64(stale)
	r.Leaked = stale >= staleLeaked && rises >= Climbing
	r.Reason = fmt.Sprintf("%d of the %d entries of %s are of objects that do not exist", stale, total, c.title)
	r.Advice = "delete an entry when its object is deleted: in the handler of the deletion, or when Get says not found"
	return append(dst, r)
}

// live is how many objects the container is compared with.
func (c *Container) live() (n int, known bool) {
	if c.objects == nil {
		return 0, false
	}
	if c.scope != "" {
		return c.objects.Live(c.scope)
	}
	n = c.objects.Total()
	return n, n > 0
}
