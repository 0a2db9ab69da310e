package probes

import (
	"cmp"
	"fmt"
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
	clients    uint64
	transports map[weak.Pointer[http.Transport]]*basesOf
	places     map[uint64]*basesOf // by site
	made       uint64
	lastClient Site
	climb      Climb
}

// basesOf is the transports of one site.
type basesOf struct {
	site   Site
	inSpan bool
	scope  string // of the spans that make them; "" when unknown
	made   int
	idle   time.Duration // the longest that a connection of theirs stays without use
	keeps  bool          // one of them keeps its idle connections for ever
	alive  int           // as of the last sweep
}

func newBases(scopes *Scopes) *bases {
	return &bases{scopes: scopes, transports: map[weak.Pointer[http.Transport]]*basesOf{}, places: map[uint64]*basesOf{}}
}

// note counts a client and its transport.
func (b *bases) note(rt http.RoundTripper) {
	base, _ := baseOf(rt)
	site := CallSite(2)
	if base == nil {
		b.noteClient(site)
		return
	}
	b.mu.Lock()
	b.clients++
	b.lastClient = site
	key := weak.Make(base)
	_, have := b.transports[key]
	p := b.places[site.ID()]
	b.mu.Unlock()
	if have {
		return
	}
	if p == nil || p.scope == "" {
		p = b.place(site)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
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

func (b *bases) noteClient(site Site) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clients++
	b.lastClient = site
}

// place gives what is known of a site, and looks whose span it belongs to as long as that is unknown; nil when there are
// too many sites.
func (b *bases) place(site Site) *basesOf {
	frames := site.Frames()
	inSpan, scope := belowSpan(frames), ""
	if b.scopes != nil {
		scope = b.scopes.scopeNow(frames)
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
	clients, made, alive, site := b.clients, b.made, len(b.transports), b.lastClient
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
	if clients == 0 {
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
	dst = append(dst, Reading{
		Resource: "HTTP clients made", Count: float64(clients), Covariate: -1, Total: true, Stack: site.Frames(), Trap: "S2-13",
		Reason: fmt.Sprintf("%d clients were made, the last one here", clients),
		Advice: "make one client at start and share it",
	})
	return append(dst, Reading{
		Resource: "HTTP transports in use", Count: float64(alive), Covariate: -1, Trap: "S2-13b", Advice: shareTransports,
		Reason: fmt.Sprintf("%d HTTP transports were made, %d are in use that were made once or keep their idle connections; each opens connections of its own", made, alive),
	})
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
		Resource: "HTTP transports made by reconciles and the like", Scope: p.scope, Count: float64(p.alive), Covariate: -1, Bounded: !p.keeps,
		Culprit: p.site.Culprit(main), Stack: p.site.Frames(), Trap: "S2-13b", Advice: shareTransports,
		Reason: fmt.Sprintf("%d HTTP transports were made here by work that makes another each time, %d are in use: each opens connections of its own, %s", p.made, p.alive, ending),
	}
}
