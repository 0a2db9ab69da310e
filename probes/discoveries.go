package probes

import (
	"fmt"
	"maps"
	"net/http"
	"runtime/pprof"
	"slices"
	"sync"
)

// discoveriesAgain is the least number of discoveries to be done again and again; a process needs a few when it starts.
const discoveriesAgain = 20

// discoveries counts how often the whole API was asked for, which making a RESTMapper or discovery client does, by the scope
// whose work did it.
type discoveries struct {
	scopes *Scopes

	mu sync.Mutex
	of map[string]*discovers
}

func newDiscoveries(scopes *Scopes) *discoveries {
	return &discoveries{scopes: scopes, of: map[string]*discovers{}}
}

// note counts a request. Its scope is that of its context, else of the functions on its stack.
func (d *discoveries) note(r *http.Request, site Site) {
	scope, labelled := pprof.Label(r.Context(), LabelController)
	if !labelled && d.scopes != nil {
		scope = d.scopes.ScopeNow(site.Frames())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.of[scope]
	if x == nil {
		if len(d.of) >= maxScopes {
			scope = ""
		}
		if x = d.of[scope]; x == nil {
			x = &discovers{}
			d.of[scope] = x
		}
	}
	x.n++
	x.site = site
}

// discovers tells whether the whole API is asked for again and again now: what it was is nobody's business.
type discovers struct {
	n      int
	site   Site // of the last one
	climb  Climb
	busy   int    // in how many reads there was one for every second span or more
	before int    // how many there were at the last read
	spans  uint64 // how many spans had begun at that time
}

// again is asked at each read, with the number of spans that have begun.
func (d *discovers) again(spans uint64) bool {
	if begun := spans - d.spans; d.n > d.before && 2*uint64(d.n-d.before) >= begun { //nolint:gosec // it is positive
		d.busy++
	}
	d.before, d.spans = d.n, spans
	return d.climb.Observe("", d.busy) >= Repeating && d.n >= discoveriesAgain
}

// begun is how many spans of a scope have begun; of no scope, something that grows by one with each span of the process.
func (d *discoveries) begun(scope string) uint64 {
	switch {
	case d.scopes == nil:
		return 0
	case scope == "":
		return d.scopes.lastSeq()
	}
	return d.scopes.Scope(scope).Stats().Begun
}

// readings gives the discoveries of each scope. Nothing is left of them, so they are no alarm.
func (d *discoveries) readings(dst []Reading, main string) []Reading {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, scope := range slices.Sorted(maps.Keys(d.of)) {
		x := d.of[scope]
		dst = append(dst, Reading{
			Resource: "API discoveries", Scope: scope, Count: float64(x.n), Covariate: -1, Total: true, Bounded: x.again(d.begun(scope)),
			Culprit: x.site.Culprit(main), Stack: x.site.Frames(),
			Reason: fmt.Sprintf("the whole API was discovered %d times, the last time here, and is by every second reconcile: a RESTMapper or discovery client is made again and again", x.n),
			Advice: "make one client for each cluster at start and share it with its RESTMapper",
		})
	}
	return dst
}
