package probes

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// TransportName is the name of [Transport] as a probe.
const TransportName = "http"

// The sites of requests other than watches: all of the first ones are taken, then one in so many, until a body is left open.
const (
	sitesAtFirst = 64
	siteEvery    = 32
)

// Transport keeps account of HTTP response bodies: who opened each, for what, and whether it was closed. It is a [Probe],
// and its Wrap fits rest.Config.Wrap and any [http.Client]:
//
//	transport := probes.NewTransport(probes.LedgerOptions{Scopes: scopes})
//	cfg.Wrap(transport.Wrap)                                               // a Kubernetes client
//	client := &http.Client{Transport: transport.Wrap(http.DefaultTransport)} // any other
//
// A body counts as open until it is closed or, unless it is a watch's, read to its end. Connections that were switched to
// another protocol (status 101) are not touched.
type Transport struct {
	ledger     *Ledger
	bases      *bases
	dials      *dials
	requests   atomic.Uint64
	suspicious atomic.Bool // a body was left open: take the site of every request
	watches    Climb       // of selections that are watched more than once

	discoveries *discoveries
}

// NewTransport gives a transport that has wrapped nothing yet.
func NewTransport(options LedgerOptions) *Transport {
	t := &Transport{
		ledger: NewLedger(TransportName, options), bases: newBases(options.Scopes), dials: newDials(options.Scopes), discoveries: newDiscoveries(options.Scopes),
	}
	t.ledger.describe = describe
	return t
}

// watchKind is the bodies of Kubernetes watches.
func watchKind() *Kind { return &kinds[0] }

// bodyKind is all other bodies.
func bodyKind() *Kind { return &kinds[1] }

// kinds is what a transport counts. It is never changed.
var kinds = [...]Kind{
	{
		Resource: "watches", Closed: "stopped", Trap: "S1-03",
		Advice: "call Stop on every watch.Interface, by defer and also after its context was cancelled; to watch for the life of the process use the manager's cache",
	},
	{
		Resource: "response bodies", Closed: "closed or read to their end", Trap: "S1-05b", Works: true,
		Advice: "close the body of every response, by defer right after the error check",
	},
}

// Name implements [Probe].
func (t *Transport) Name() string { return TransportName }

// Wrap gives a round tripper that sends requests through base and keeps account of their bodies. A nil base is
// [http.DefaultTransport]; a base that this transport has wrapped already is given back as it is.
func (t *Transport) Wrap(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	if t.wraps(base) {
		return base
	}
	t.bases.note(base)
	return &tracker{base: base, transport: t}
}

// wraps reports whether a round tripper or one of those that it wraps is this transport's.
func (t *Transport) wraps(rt http.RoundTripper) bool {
	for range maxUnwrap {
		w, wrapper := rt.(interface{ WrappedRoundTripper() http.RoundTripper })
		if !wrapper {
			return false
		}
		if have, ours := rt.(*tracker); ours && have.transport == t {
			return true
		}
		rt = w.WrappedRoundTripper()
	}
	return false
}

// tracker is a wrapped round tripper.
type tracker struct {
	base      http.RoundTripper
	transport *Transport
	share     share
}

// WrappedRoundTripper gives the base, as client-go's helpers expect of a wrapper.
func (t *tracker) WrappedRoundTripper() http.RoundTripper { return t.base }

// RoundTrip implements [http.RoundTripper].
func (t *tracker) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.roundTrip(r)
	if err != nil || resp.StatusCode == http.StatusSwitchingProtocols || resp.Body == nil || resp.Body == http.NoBody {
		return resp, err
	}
	if _, duplex := resp.Body.(io.Writer); duplex {
		return resp, nil
	}
	kind := bodyKind()
	watch := isWatch(r)
	if watch {
		kind = watchKind()
	}
	site := t.transport.site(r, watch)
	b := &body{ReadCloser: resp.Body, watch: watch}
	b.entry = t.transport.ledger.openFor(r.Context(), kind, target(r, watch), site, endsItself(r, watch, site))
	resp.Body = b
	return resp, nil
}

// site takes the calls of a request, unless there are so many that it would cost too much.
func (t *Transport) site(r *http.Request, watch bool) Site {
	n := t.requests.Add(1)
	if path := r.URL.Path; path == "/api" || path == "/apis" {
		site := CallSite(2)
		t.discoveries.note(r, site)
		return site
	}
	if watch || n <= sitesAtFirst || n%siteEvery == 0 || t.suspicious.Load() {
		return CallSite(2)
	}
	return Site{}
}

// target says what a request is for, so that two can be compared. A watch's position in the history, which differs each
// time, is no part of it.
func target(r *http.Request, watch bool) string {
	if !watch {
		return r.Method + " " + r.URL.Host + r.URL.Path + "?" + r.URL.RawQuery
	}
	return "WATCH " + r.URL.Host + r.URL.Path + "?" + selectors(r.URL.RawQuery) + " " + r.Header.Get("Accept")
}

// selectors keeps what selects objects of a watch's query.
func selectors(raw string) string {
	var kept []string
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if strings.HasPrefix(pair, "labelSelector=") || strings.HasPrefix(pair, "fieldSelector=") {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}

// body is a response body under account.
type body struct {
	io.ReadCloser
	entry *Entry
	watch bool
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
		b.entry.Touch()
	case !b.watch: // the connection is free again, whether or not the body gets closed
		b.entry.Close()
	}
	return n, err
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.entry.Close()
	return b.ReadCloser.Close()
}

// Read implements [Probe]: open bodies and watches, those left open by the work that opened them, watches of one
// selection, and the transports and clients made.
func (t *Transport) Read(ctx context.Context, dst []Reading) []Reading {
	open, start := map[string]*openWatches{}, len(dst)
	dst = t.ledger.read(ctx, dst, func(v *entryView) {
		switch {
		case v.kind == watchKind():
			if !v.bounded(t.ledger.Options().Grace) {
				noteWatch(open, v, v.ended, t.ledger.Options().Grace)
			}
		case v.ended && !v.busy && v.age >= t.ledger.Options().Grace:
			t.suspicious.Store(true)
		}
	})
	dst = append(dst[:start], dropUnplaced(dst[start:])...)
	dst = t.watchReadings(dst, open)
	main := t.ledger.Options().MainModule
	dst = t.discoveries.readings(dst, main)
	dst = t.bases.readings(dst, main)
	return t.dials.readings(dst, main, makers(dst))
}

// dropUnplaced takes out the leaks whose site was not taken when there is one of the same kind and scope whose site is
// known: they are the same leak.
func dropUnplaced(list []Reading) []Reading {
	type what struct{ resource, scope string }
	placed := map[what]bool{}
	for i := range list {
		if list[i].Leaked && len(list[i].Stack) > 0 {
			placed[what{list[i].Resource, list[i].Scope}] = true
		}
	}
	return slices.DeleteFunc(list, func(r Reading) bool {
		return r.Leaked && len(r.Stack) == 0 && placed[what{r.Resource, r.Scope}]
	})
}
