package probes

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// When connections are made call by call.
const (
	// dialsAgain is the least number of them.
	dialsAgain = 20
	// dialsApart is the time after which another connection of a place is no wonder: the one before may have been idle for too
	// long.
	dialsApart = 30 * time.Second
	// callsRemembered is of how many calls of a round tripper a share is taken; what was before counts less.
	callsRemembered = 256
	// A trace costs a request half a µs. The first calls of a round tripper are all traced, and so are the later ones while most
	// make a connection; else one in so many is, and stands for the others.
	tracedFirst = 64
	tracedEvery = 16
)

// dials counts the connections that round trips make, by the scope that made them, and finds the calls that make one each time.
type dials struct {
	scopes *Scopes

	mu     sync.Mutex
	made   map[string]uint64 // by scope
	places map[dialKey]*dialPlace
	climb  Climb
}

type dialKey struct {
	scope string
	site  uint64
}

// dialPlace is the connections of one call.
type dialPlace struct {
	scope  string
	site   Site
	inSpan bool
	made   int
	again  int       // made soon after another, by a round tripper most of whose calls make one
	last   time.Time // when one was made last
}

func newDials(scopes *Scopes) *dials {
	return &dials{scopes: scopes, made: map[string]uint64{}, places: map[dialKey]*dialPlace{}}
}

// share is how many of a round tripper's calls make a connection.
type share struct {
	calls, dialled atomic.Uint64
	most           atomic.Bool // as of the last call that was traced
}

// due counts a call, and gives for how many calls it stands when it is to be traced, 0 when it is not.
func (s *share) due() (stands int32) {
	switch n := s.calls.Add(1); {
	case n <= tracedFirst || s.most.Load():
		return 1
	case n%tracedEvery == 0:
		return tracedEvery
	}
	return 0
}

// take takes in the connections of a call that was traced and reports whether most calls make one.
func (s *share) take(made int32) (most bool) {
	dialled := s.dialled.Add(uint64(made)) //nolint:gosec // it is not negative
	calls := s.calls.Load()
	if made > 0 && calls > callsRemembered { // what another call adds at the same time may be lost: no matter
		s.calls.Store(calls / 2)
		s.dialled.Store(dialled / 2)
	}
	most = 2*dialled >= calls
	s.most.Store(most)
	return most
}

// note counts the connections that a call has made. most is set when most calls of its round tripper make one.
func (d *dials) note(ctx context.Context, made int32, most bool) {
	site := CallSite(3)
	scope, inSpan := pprof.Label(ctx, LabelController)
	if !inSpan {
		frames := site.Frames()
		inSpan = belowSpan(frames)
		if d.scopes != nil {
			scope = d.scopes.ScopeNow(frames)
		}
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, have := d.made[scope]; !have && len(d.made) >= maxScopes {
		d.made[""] += uint64(made) //nolint:gosec // it is positive
	} else {
		d.made[scope] += uint64(made) //nolint:gosec // it is positive
	}
	key := dialKey{scope, site.ID()}
	p := d.places[key]
	if p == nil {
		if len(d.places) >= maxBases {
			return
		}
		p = &dialPlace{scope: scope, site: site, inSpan: inSpan || scope != ""}
		d.places[key] = p
	}
	if most && now.Sub(p.last) < dialsApart {
		p.again += int(made)
	}
	p.made += int(made)
	p.last = now
}

// readings gives how many connections each scope has made, and the calls of spans that make one each time, unless their
// scope is one of those whose transports are known to be made again and again.
func (d *dials) readings(dst []Reading, main string, known map[string]bool) []Reading {
	d.mu.Lock()
	made := len(dst)
	for scope, n := range d.made {
		dst = append(dst, Reading{Resource: "connections made", Scope: scope, Count: float64(n), Covariate: -1, Total: true, Shown: true})
	}
	var list []dialPlace
	for key, p := range d.places {
		again := d.climb.Observe(key.scope+" "+strconv.FormatUint(key.site, 36), p.again) >= Repeating
		if again && p.inSpan && p.again >= dialsAgain && 2*p.again >= p.made && !known[p.scope] {
			list = append(list, *p)
		}
	}
	d.climb.EndRound()
	d.mu.Unlock()
	slices.SortFunc(dst[made:], func(a, b Reading) int { return cmp.Compare(a.Scope, b.Scope) })
	slices.SortFunc(list, func(a, b dialPlace) int {
		return cmp.Or(cmp.Compare(b.made, a.made), cmp.Compare(a.scope, b.scope), cmp.Compare(a.site.ID(), b.site.ID()))
	})
	for i := range list[:min(len(list), maxReadings)] {
		dst = append(dst, list[i].reading(main))
	}
	return dst
}

func (p *dialPlace) reading(main string) Reading {
	return Reading{
		Resource: "connections made call by call", Scope: p.scope, Count: float64(p.made), Covariate: -1, Listed: true, Shown: true,
		Culprit: p.site.Culprit(main), Stack: p.site.Frames(), Trap: "S2-13b",
		Reason: fmt.Sprintf("%d connections were made here, most calls make another: each costs a handshake, and a port for a minute after it has ended", p.made),
		Advice: "share one client with keep-alives on, and read bodies to their end before they are closed",
	}
}

// traced is a request's context that notes whether the round trip makes a connection.
type traced struct {
	context.Context //nolint:containedctx // it is one

	trace httptrace.ClientTrace
	made  atomic.Int32
}

// newTraced gives the context of a request with a trace that does what the request's own does, too.
func newTraced(ctx context.Context) *traced {
	t := &traced{Context: ctx}
	if own := httptrace.ContextClientTrace(ctx); own != nil {
		t.trace = *own
	}
	own := t.trace.GotConn
	t.trace.GotConn = func(info httptrace.GotConnInfo) {
		if !info.Reused {
			t.made.Add(1)
		}
		if own != nil {
			own(info)
		}
	}
	return t
}

// Value implements [context.Context]. To ask httptrace to put the trace in would make it join the two by reflection, which
// takes longer than all else: client-go gives each request a trace of its own.
func (t *traced) Value(key any) any {
	if traceOnly.Value(key) != nil {
		return &t.trace
	}
	return t.Context.Value(key)
}

// traceOnly has a value for httptrace's key, which nobody else can name, and for no other. It is never changed.
var traceOnly = httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{})

// roundTrip sends a request through the base and counts the connections that it makes.
func (t *tracker) roundTrip(r *http.Request) (*http.Response, error) {
	stands := t.share.due()
	if stands == 0 {
		return t.base.RoundTrip(r)
	}
	ctx := newTraced(r.Context())
	sent := r.WithContext(ctx) //nolint:contextcheck // it is made of the request's
	resp, err := t.base.RoundTrip(sent)
	made := stands * ctx.made.Load()
	if most := t.share.take(made); made > 0 {
		t.transport.dials.note(r.Context(), made, most)
	}
	if resp != nil && resp.Request == sent {
		resp.Request = r
	}
	return resp, err
}
