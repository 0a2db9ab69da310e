package probes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/probes"
)

// dialer sends requests of reconciles of HTTP/1.1 over a transport under account.
type dialer struct {
	t         *testing.T
	url       string
	scopes    *probes.Scopes
	transport *probes.Transport
	base      *http.Transport
	rt        http.RoundTripper
}

func newDialer(t *testing.T) *dialer {
	t.Helper()
	leavesNothing(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	d := &dialer{t: t, url: srv.URL, scopes: probes.NewScopes(), base: &http.Transport{}}
	d.transport = probes.NewTransport(probes.LedgerOptions{Scopes: d.scopes})
	d.rt = d.transport.Wrap(d.base)
	t.Cleanup(func() {
		d.base.CloseIdleConnections()
		srv.Close()
	})
	return d
}

func (d *dialer) call(ctx context.Context, rt http.RoundTripper) {
	resp := roundTrip(d.t, ctx, rt, d.url)
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// without calls with a context that says nothing of the reconcile.
func (d *dialer) without(rt http.RoundTripper) { d.call(background, rt) }

// withItsOwn calls with a client and transport of the call's own.
func (d *dialer) withItsOwn(ctx context.Context) {
	base := &http.Transport{IdleConnTimeout: time.Minute}
	defer base.CloseIdleConnections()
	d.call(ctx, d.transport.Wrap(base))
}

// reconciles calls f in so many reconciles of app and reads the probe now and then.
func (d *dialer) reconciles(n int, f func(ctx context.Context)) (listed []probes.Reading) {
	for i := range n {
		d.scopes.Scope("app").Do(d.t.Context(), f)
		if i%10 != 9 {
			continue
		}
		listed = nil
		for _, r := range d.transport.Read(d.t.Context(), nil) {
			if r.Resource == "connections made call by call" {
				listed = append(listed, r)
			}
		}
	}
	return listed
}

// made gives the connections that a scope has made.
func (d *dialer) made(scope string) float64 {
	for _, r := range d.transport.Read(d.t.Context(), nil) {
		if r.Resource == "connections made" && r.Scope == scope {
			return r.Count
		}
	}
	return 0
}

// TestConnectionsMadeCallByCall has each way to make a connection for each call, and the clean twins.
func TestConnectionsMadeCallByCall(t *testing.T) {
	const n = 100
	for _, test := range []struct {
		name   string
		setUp  func(d *dialer)
		call   func(ctx context.Context, d *dialer)
		scope  string
		made   float64
		listed bool
	}{
		{"keep-alives are off", func(d *dialer) { d.base.DisableKeepAlives = true }, func(ctx context.Context, d *dialer) { d.call(ctx, d.rt) }, "app", n, true},
		{"the same without the context, by the function", func(d *dialer) {
			d.base.DisableKeepAlives = true
			d.scopes.Claim("github.com/leakguard/leakguard/probes_test.(*dialer).without", "app")
		}, func(_ context.Context, d *dialer) { d.without(d.rt) }, "app", n, true}, //nolint:contextcheck // on purpose
		{"the same without the context", func(d *dialer) { d.base.DisableKeepAlives = true }, func(_ context.Context, d *dialer) { d.without(d.rt) }, "", n, true}, //nolint:contextcheck // on purpose
		{"a transport for each call, which is said already", func(d *dialer) {
			d.scopes.Claim("github.com/leakguard/leakguard/probes_test.(*dialer).withItsOwn", "app")
		}, func(ctx context.Context, d *dialer) { d.withItsOwn(ctx) }, "app", n, false},
		{"one client", func(*dialer) {}, func(ctx context.Context, d *dialer) { d.call(ctx, d.rt) }, "app", 1, false},
		{"two hosts", func(*dialer) {}, func(ctx context.Context, d *dialer) {
			d.call(ctx, d.rt)
			d.url = strings.Replace(d.url, "127.0.0.1", "localhost", 1)
		}, "app", 2, false},
		{"a few after a restart", func(*dialer) {}, func() func(ctx context.Context, d *dialer) {
			calls := 0
			return func(ctx context.Context, d *dialer) {
				if calls++; calls%20 == 0 && calls <= 60 { // those that are traced one by one
					d.base.CloseIdleConnections()
				}
				d.call(ctx, d.rt)
			}
		}(), "app", 4, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDialer(t)
			test.setUp(d)
			listed := d.reconciles(n, func(ctx context.Context) { test.call(ctx, d) })
			if got := d.made(test.scope); got != test.made {
				t.Errorf("%v connections of %q, want %v", got, test.scope, test.made)
			}
			if (len(listed) == 1) != test.listed {
				t.Fatalf("listed: %+v, want %v", listed, test.listed)
			}
			for _, r := range listed {
				if !r.Listed || r.Leaked || r.Climbing || r.Scope != test.scope || !strings.HasSuffix(r.Culprit.Function, "probes_test.roundTrip") {
					t.Errorf("got %+v, want it listed for %q with the call", r, test.scope)
				}
			}
		})
	}
}

// TestConnectionsOutsideOfReconciles are made call by call by nobody who does it again and again as work.
func TestConnectionsOutsideOfReconciles(t *testing.T) {
	d := newDialer(t)
	d.base.DisableKeepAlives = true
	for range 100 {
		d.call(t.Context(), d.rt)
		for _, r := range d.transport.Read(t.Context(), nil) {
			if r.Listed {
				t.Fatalf("listed: %+v", r)
			}
		}
	}
	if got := d.made(""); got != 100 {
		t.Errorf("%v connections, want 100", got)
	}
}

// TestConnectionsOfManyCalls are estimated once a client has shown that it keeps its connections, and counted again when it
// does no longer.
func TestConnectionsOfManyCalls(t *testing.T) {
	d := newDialer(t)
	d.reconciles(1000, func(ctx context.Context) { d.call(ctx, d.rt) })
	if got := d.made("app"); got != 1 {
		t.Errorf("%v connections of one client, want 1", got)
	}
	listed := d.reconciles(600, func(ctx context.Context) {
		d.base.CloseIdleConnections()
		d.call(ctx, d.rt)
	})
	if got := d.made("app"); got < 500 || got > 700 || len(listed) != 1 {
		t.Errorf("%v connections after 600 more, %d places listed, want about 600, in one place", got, len(listed))
	}
}

// TestTraceOfTheRequest goes on working beside the count, and what comes back is the request's own.
func TestTraceOfTheRequest(t *testing.T) {
	d := newDialer(t)
	type key struct{}
	var got []string
	trace := &httptrace.ClientTrace{
		GetConn:      func(string) { got = append(got, "get") },
		GotConn:      func(info httptrace.GotConnInfo) { got = append(got, fmt.Sprint("got ", info.Reused)) },
		DNSStart:     func(httptrace.DNSStartInfo) { got = append(got, "dns") },
		WroteHeaders: func() {},
	}
	d.url = strings.Replace(d.url, "127.0.0.1", "localhost", 1)
	var seen any
	inner := d.transport.Wrap(roundTripFunc(func(r *http.Request) (*http.Response, error) {
		seen = r.Context().Value(key{})
		return d.base.RoundTrip(r)
	}))
	for range 2 {
		ctx := httptrace.WithClientTrace(context.WithValue(t.Context(), key{}, "mine"), trace)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := inner.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.Request != r {
			t.Error("the response's request is not the one that was sent")
		}
	}
	if want := "[get dns got false get got true]"; fmt.Sprint(got) != want || seen != "mine" {
		t.Errorf("the request's own trace saw %v and its context's value is %v, want %s and mine", got, seen, want)
	}
	if n := d.made(""); n != 1 {
		t.Errorf("%v connections, want 1", n)
	}
}

// TestCancelledCall ends a call by its context, which the count stands between.
func TestCancelledCall(t *testing.T) {
	d := newDialer(t)
	d.url += "/" // no body is left when it fails
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.rt.RoundTrip(r); !errors.Is(err, cause) && !errors.Is(err, context.Canceled) { //nolint:bodyclose // there is none
		t.Errorf("got %v, want the context's error", err)
	}
}
