package probes

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
	"weak"
)

// maxBases bounds the transports that are followed.
const maxBases = 1024

// bases follows what [Transport.Wrap] is given: each client that is made wraps once, and a client that shares no transport
// with earlier ones opens connections of its own.
type bases struct {
	scopes *Scopes

	mu         sync.Mutex
	transports map[weak.Pointer[http.Transport]]*basesOf
	places     map[uint64]*basesOf // by site
	made       uint64
	climb      Climb
	clients    map[string]*clientsOf // by scope
}

// basesOf is the transports of one site.
type basesOf struct {
	site    Site
	inSpan  bool
	scope   string // of the spans that make them; "" when unknown
	clients int
	made    int
	idle    time.Duration // the longest that a connection of theirs stays without use
	keeps   bool          // one of them keeps its idle connections for ever
	alive   int           // as of the last sweep
}

func newBases(scopes *Scopes) *bases {
	return &bases{
		scopes: scopes, transports: map[weak.Pointer[http.Transport]]*basesOf{}, places: map[uint64]*basesOf{}, clients: map[string]*clientsOf{},
	}
}

// clientsOf is the clients that the work of one scope has made.
type clientsOf struct {
	n     uint64
	place *basesOf // that has made most of them; nil when there are too many places
}

// maxScopes bounds the scopes that are counted by themselves; what belongs to others is the process's.
const maxScopes = 256

// note counts a client and its transport.
func (b *bases) note(rt http.RoundTripper) {
	base, _ := baseOf(rt)
	site := CallSite(2)
	b.mu.Lock()
	p := b.places[site.ID()]
	b.mu.Unlock()
	if p == nil || p.scope == "" {
		p = b.place(site)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noteClientLocked(p)
	if base == nil {
		return
	}
	key := weak.Make(base)
	if _, have := b.transports[key]; have {
		return
	}
	b.made++
	if p != nil {
		p.made++
		p.idle, p.keeps = max(p.idle, base.IdleConnTimeout), p.keeps || base.IdleConnTimeout == 0
	}
	if len(b.transports) >= maxBases {
		b.sweepLocked()
	}
	if len(b.transports) < maxBases {
		b.transports[key] = p
	}
}

func (b *bases) noteClientLocked(p *basesOf) {
	scope := ""
	if p != nil {
		scope = p.scope
	}
	if b.clients[scope] == nil && len(b.clients) >= maxScopes {
		scope = ""
	}
	c := b.clients[scope]
	if c == nil {
		c = &clientsOf{}
		b.clients[scope] = c
	}
	c.n++
	if p == nil {
		return
	}
	if p.clients++; c.place == nil || p.clients > c.place.clients {
		c.place = p
	}
}

// place gives what is known of a site, and looks whose span it belongs to as long as that is unknown; nil when there are
// too many sites.
func (b *bases) place(site Site) *basesOf {
	frames := site.Frames()
	inSpan, scope := belowSpan(frames), ""
	if b.scopes != nil {
		scope = b.scopes.ScopeNow(frames)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.places[site.ID()]
	if p == nil {
		if len(b.places) >= maxBases {
			return nil
		}
		p = &basesOf{site: site, inSpan: inSpan || scope != ""}
		b.places[site.ID()] = p
	}
	if p.scope == "" {
		p.scope = scope
	}
	return p
}

// sweepLocked forgets the transports that the garbage collector has freed.
func (b *bases) sweepLocked() {
	for p := range b.transports {
		if p.Value() == nil {
			delete(b.transports, p)
		}
	}
}

// maxUnwrap bounds the wrappers that are looked through.
const maxUnwrap = 32

// baseOf looks through wrappers for the transport that opens connections.
func baseOf(rt http.RoundTripper) (t *http.Transport, ok bool) {
	for range maxUnwrap {
		switch w := rt.(type) {
		case *http.Transport:
			return w, true
		case interface{ WrappedRoundTripper() http.RoundTripper }:
			rt = w.WrappedRoundTripper()
		default:
			return nil, false
		}
	}
	return nil, false
}

// readings gives the numbers of clients made and of transports alive, and the work that makes transports again and again.
func (b *bases) readings(dst []Reading, main string) []Reading {
	b.mu.Lock()
	b.sweepLocked()
	made, alive, clients := b.made, len(b.transports), b.clientReadingsLocked(main)
	for _, p := range b.places {
		p.alive = 0
	}
	for _, p := range b.transports {
		if p != nil {
			p.alive++
		}
	}
	var list []basesOf
	for id, p := range b.places {
		if again := b.climb.Observe(strconv.FormatUint(id, 36), p.made) >= Repeating; again && p.inSpan {
			list = append(list, *p)
		}
	}
	b.climb.EndRound()
	b.mu.Unlock()
	if len(clients) == 0 {
		return dst
	}
	slices.SortFunc(list, func(x, y basesOf) int {
		return cmp.Or(cmp.Compare(y.made, x.made), cmp.Compare(x.site.ID(), y.site.ID()))
	})
	for i := range list[:min(len(list), maxReadings)] {
		if !list[i].keeps {
			alive -= list[i].alive
		}
		dst = append(dst, list[i].reading(main))
	}
	dst = append(dst, clients...)
	return append(dst, Reading{
		Resource: "HTTP transports in use", Count: float64(alive), Covariate: -1, Trap: "S2-13b", Advice: shareTransports,
		Reason: fmt.Sprintf("%d HTTP transports were made, %d are in use that were made once or keep their idle connections; each opens connections of its own", made, alive),
	})
}

// clientReadingsLocked gives how many clients the work of each scope has made.
func (b *bases) clientReadingsLocked(main string) []Reading {
	list := make([]Reading, 0, len(b.clients))
	for _, scope := range slices.Sorted(maps.Keys(b.clients)) {
		c := b.clients[scope]
		r := Reading{
			Resource: "HTTP clients made", Scope: scope, Count: float64(c.n), Covariate: -1, Total: true, Trap: "S2-13",
			Reason: fmt.Sprintf("%d clients were made", c.n), Advice: "make one client at start and share it",
		}
		if c.place != nil {
			r.Stack, r.Reason = c.place.site.Frames(), r.Reason+", most of them here"
			if scope != "" { // else they are no one's, and of many places
				r.Culprit = c.place.site.Culprit(main)
			}
		}
		list = append(list, r)
	}
	return list
}

// transportsAgain is what is said of transports that are made again and again.
const transportsAgain = "HTTP transports made by reconciles and the like"

// makers gives the scopes that make transports again and again, which tells why they make connections.
func makers(list []Reading) map[string]bool {
	scopes := map[string]bool{}
	for i := range list {
		if list[i].Resource == transportsAgain && list[i].Scope != "" {
			scopes[list[i].Scope] = true
		}
	}
	return scopes
}

// shareTransports is the advice for whoever makes transports.
const shareTransports = "share one rest.Config without Dial and Proxy functions of its own, so that clients share their transport"

// reading is about transports that spans make again and again. Their connections end when they are idle for long enough,
// unless one of the transports keeps them.
func (p *basesOf) reading(main string) Reading {
	ending := fmt.Sprintf("which end after %v without use: their number is the rate of that work times this", p.idle)
	if p.keeps {
		ending = "which stay for ever when they are not used"
	}
	return Reading{
		Resource: transportsAgain, Scope: p.scope, Count: float64(p.alive), Covariate: -1, Bounded: !p.keeps,
		Culprit: p.site.Culprit(main), Stack: p.site.Frames(), Trap: "S2-13b", Advice: shareTransports,
		Reason: fmt.Sprintf("%d HTTP transports were made here by work that makes another each time, %d are in use: each opens connections of its own, %s", p.made, p.alive, ending),
	}
}
