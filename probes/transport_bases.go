package probes

import (
	"fmt"
	"net/http"
	"sync"
	"weak"
)

// maxBases bounds the transports that are followed.
const maxBases = 1024

// bases follows what [Transport.Wrap] is given: each client that is made wraps once, and a client that shares no transport
// with earlier ones opens connections of its own.
type bases struct {
	mu         sync.Mutex
	clients    uint64
	transports map[weak.Pointer[http.Transport]]Site
	made       uint64
	lastClient Site
}

func newBases() *bases { return &bases{transports: map[weak.Pointer[http.Transport]]Site{}} }

// note counts a client and its transport.
func (b *bases) note(rt http.RoundTripper) {
	base, _ := baseOf(rt)
	site := CallSite(2)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clients++
	b.lastClient = site
	if base == nil {
		return
	}
	key := weak.Make(base)
	if _, have := b.transports[key]; have {
		return
	}
	b.made++
	if len(b.transports) >= maxBases {
		b.sweepLocked()
	}
	if len(b.transports) < maxBases {
		b.transports[key] = site
	}
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

// readings gives the numbers of clients made and of transports alive.
func (b *bases) readings(dst []Reading) []Reading {
	b.mu.Lock()
	b.sweepLocked()
	clients, made, alive, site := b.clients, b.made, len(b.transports), b.lastClient
	b.mu.Unlock()
	if clients == 0 {
		return dst
	}
	dst = append(dst, Reading{
		Resource: "HTTP clients made", Count: float64(clients), Covariate: -1, Stack: site.Frames(), Trap: "S2-13",
		Reason: fmt.Sprintf("%d clients were made, the last one here", clients),
		Advice: "make one client at start and share it",
	})
	return append(dst, Reading{
		Resource: "HTTP transports in use", Count: float64(alive), Covariate: -1, Trap: "S2-13b",
		Reason: fmt.Sprintf("%d HTTP transports were made, %d are in use; each opens connections of its own", made, alive),
		Advice: "share one rest.Config without Dial and Proxy functions of its own, so that clients share their transport",
	})
}
