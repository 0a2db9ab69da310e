package stackmatch

import (
	"slices"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Context is what predicates see beside the group they are asked about: the other groups of the same dump or profile
// and, when there are several dumps, the counts of the earlier ones. It is read-only after [NewContext] and may be used
// concurrently.
type Context struct {
	main    string
	census  census
	locks   lockTable
	piles   map[*Group]pile
	byID    map[uint64]int
	members []Goroutine
	earlier []map[string]int
	before  []census
	now     map[string]int
	started growth // by what the goroutines were started for, whatever they do now
	groups  []Group
	warmUp  bool
	roots   map[string]siblings
	times   []time.Time // of the earlier dumps and of this one; nil when unknown
	readers int         // goroutines that could read a watch; counted only when there are watches beside the informers'
}

// ContextOptions is what is known beside the groups. The zero value is right for the groups of a cheap profile.
type ContextOptions struct {
	// Main is the path of the main module; empty means unknown.
	Main string
	// Goroutines are the goroutines that the groups' Members point into; nil when the form has none, as in a profile.
	Goroutines []Goroutine
	// Earlier are the groups of earlier dumps of the same process, oldest first; nil when there are none.
	Earlier [][]Group
	// Times say when the earlier dumps and this one were taken, for [Context.PerMinute]. Other than one time for each of
	// them means unknown.
	Times []time.Time
}

// NewContext looks once at all groups and counts what the predicates ask for. Its cost is one look at each frame; it
// keeps the slices that it is given, which must not change while the Context is in use.
func NewContext(groups []Group, o ContextOptions) *Context {
	c := &Context{main: o.Main, members: o.Goroutines, groups: groups}
	waiters := newWaiters(groups)
	c.census = takeCensus(waiters)
	c.locks = newLockTable(waiters, o.Main)
	c.piles = newPiles(waiters)
	c.roots = newRoots(groups, o.Main)
	if c.census.liveWatches >= c.census.reflectors+20 {
		c.readers = c.countReaders()
	}
	if len(o.Goroutines) > 0 {
		c.byID = make(map[uint64]int, len(o.Goroutines))
		for i := range o.Goroutines {
			c.byID[o.Goroutines[i].ID] = i
		}
	}
	if len(o.Earlier) > 0 {
		c.now = shapeCounts(groups)
		c.started = growth{first: rootCounts(o.Earlier[0]), now: rootCounts(groups)}
		for _, before := range o.Earlier {
			c.earlier = append(c.earlier, shapeCounts(before))
			c.before = append(c.before, takeCensus(newWaiters(before)))
		}
		if len(o.Times) == len(o.Earlier)+1 {
			c.times = o.Times
		}
		c.warmUp = startedAfter(c.earlier[0], c.now)
	}
	return c
}

// Predicate is a condition on a group that needs more than its own stack: counts of other goroutines, who holds a lock,
// what earlier dumps had.
type Predicate struct {
	// Name is how rules ask for it.
	Name string
	// Doc says when it holds, in one sentence.
	Doc   string
	holds func(group *Group, in *Context) bool
}

// Holds reports whether the predicate holds for a group; with a nil context it never does.
func (p Predicate) Holds(group *Group, in *Context) bool {
	return in != nil && p.holds != nil && p.holds(group, in)
}

// Predicates gives all predicates, sorted by name.
func Predicates() []Predicate {
	out := slices.Concat(groupPredicates(), familyPredicates(), lockPredicates(), growthPredicates())
	slices.SortFunc(out, func(a, b Predicate) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// predicateNamed finds a predicate.
func predicateNamed(name string) (Predicate, bool) {
	for _, p := range Predicates() {
		if p.Name == name {
			return p, true
		}
	}
	return Predicate{}, false
}

// predicateNames lists the names for an error message.
func predicateNames() []string {
	var names []string
	for _, p := range Predicates() {
		names = append(names, p.Name)
	}
	return names
}

// culpritOf is the frame to blame for a group and whose code it is. It is [frame.Culprit] on names without the place
// where a module is vendored.
func (c *Context) culpritOf(g *Group) (frame.Frame, frame.Origin, bool) {
	var library frame.Frame
	found := false
	for i := range len(g.Stack) + 1 {
		f := g.CreatedBy
		if i < len(g.Stack) {
			f = g.Stack[i]
		} else if f.Function == "" {
			break
		}
		f.Function = unvendored(f.Function)
		switch origin := frame.OriginOf(f.Function, c.main); {
		case origin == frame.Main:
			return f, origin, true
		case origin == frame.Library && !found && !frame.IsSpawner(f.Function):
			library, found = f, true
		}
	}
	return library, frame.Library, found
}
