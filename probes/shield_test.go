package probes_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/probes"
)

// newServer answers each request and streams on watches until the client goes.
func newServer(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello")
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// roundTrip sends one request and gives its response, body open.
func roundTrip(t *testing.T, ctx context.Context, rt http.RoundTripper, url string) *http.Response { //nolint:revive // t first
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// TestShield looks at who has inherited a span's labels when its first request opened the shared connection.
func TestShield(t *testing.T) {
	for _, tt := range []struct {
		name           string
		http2          bool
		wrap           func(http.RoundTripper) http.RoundTripper
		query          string
		wantConnection string
		want           []string // the labels of the connection's goroutines
	}{
		{"bare HTTP/1.1", false, func(rt http.RoundTripper) http.RoundTripper { return rt }, "", "net/http.(*persistConn)", []string{"app", "app"}},
		{"shielded HTTP/1.1", false, probes.Shield, "", "net/http.(*persistConn)", []string{"", ""}},
		{"bare HTTP/2", true, func(rt http.RoundTripper) http.RoundTripper { return rt }, "", "lientConn).readLoop", []string{"app"}},
		{"shielded HTTP/2", true, probes.Shield, "", "lientConn).readLoop", []string{""}},
		{"a watch keeps its labels", false, probes.Shield, "?watch=true", "net/http.(*persistConn)", []string{"app", "app"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leavesNothing(t)
			srv := newServer(t)
			base := srv.Client().Transport.(*http.Transport).Clone()
			base.ForceAttemptHTTP2 = tt.http2
			if !tt.http2 {
				base.Protocols = new(http.Protocols)
				base.Protocols.SetHTTP1(true)
				base.TLSClientConfig.NextProtos = nil
			}
			defer base.CloseIdleConnections()
			rt := tt.wrap(base)
			scope := probes.NewScopes().Scope("app")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			scope.Do(ctx, func(ctx context.Context) {
				resp := roundTrip(t, ctx, rt, srv.URL+"/"+tt.query)
				controllers, _ := labelsOf(t, tt.wantConnection)
				if diff := cmp.Diff(tt.want, controllers); diff != "" {
					t.Errorf("labels of the connection (-want +got):\n%s", diff)
				}
				if own, _ := labelsOf(t, "probes_test.roundTrip"); len(own) != 0 {
					t.Errorf("round trips still running: %v", own)
				}
				mine, _ := labelsOf(t, "probes_test.TestShield")
				if !slices.Contains(mine, "app") {
					t.Errorf("after the round trip the goroutine itself is labelled %q, want app", mine)
				}
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestShieldLeavesOthersAlone sends a request outside of any span: the user's own labels stay.
func TestShieldLeavesOthersAlone(t *testing.T) {
	var seen string
	base := roundTripFunc(func(*http.Request) (*http.Response, error) {
		seen = strings.Join(labelsOfKey(t, "probes_test.TestShieldLeavesOthersAlone", "tenant"), ",")
		return &http.Response{Body: http.NoBody}, nil
	})
	pprof.Do(t.Context(), pprof.Labels("tenant", "blue"), func(ctx context.Context) {
		resp := roundTrip(t, ctx, probes.Shield(base), "http://example.com/")
		_ = resp.Body.Close()
	})
	if seen != "blue" {
		t.Errorf("during the round trip the goroutine is labelled %q, want blue", seen)
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestShieldUnwraps(t *testing.T) {
	type wrapper interface{ WrappedRoundTripper() http.RoundTripper }
	base := &http.Transport{}
	if got := probes.Shield(base).(wrapper).WrappedRoundTripper(); got != base {
		t.Errorf("WrappedRoundTripper gives %v, want the base", got)
	}
	if got := probes.Shield(nil).(wrapper).WrappedRoundTripper(); got != http.DefaultTransport {
		t.Errorf("WrappedRoundTripper of nil gives %v, want http.DefaultTransport", got)
	}
}

func TestDetach(t *testing.T) {
	done := make(chan string)
	probes.NewScopes().Scope("app").Do(t.Context(), func(context.Context) {
		go func() { //nolint:contextcheck // no labels at all is the point
			probes.Detach()
			mine, _ := labelsOf(t, "probes_test.TestDetach.func1.1")
			done <- mine[0]
		}()
		if got := <-done; got != "" {
			t.Errorf("after Detach the goroutine is labelled %q", got)
		}
	})
}
