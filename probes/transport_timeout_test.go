package probes_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/probes"
)

// TestWatchThatTimesOut leaves four watches open whose request says when the server ends them, and others that do not.
func TestWatchThatTimesOut(t *testing.T) {
	const bounded, leaked = "app: watches left open until they time out 4 bounded", "app: watches left open 4 leaked"
	for _, tt := range []struct {
		name  string
		query string
		ends  time.Duration // when the server does end them; 0 for never
		want  map[time.Duration][]string
	}{
		{"ended in time", "&timeoutSeconds=60", 60 * time.Second, map[time.Duration][]string{time.Second: {bounded}, 59 * time.Second: {bounded}, 61 * time.Second: nil}},
		{"never ended", "&timeoutSeconds=60", 0, map[time.Duration][]string{79 * time.Second: {bounded}, 81 * time.Second: {leaked}}},
		{"without a timeout", "", 0, map[time.Duration][]string{19 * time.Second: nil, 21 * time.Second: {leaked}}},
		{"with a timeout that is none", "&timeoutSeconds=soon", 0, map[time.Duration][]string{21 * time.Second: {leaked}}},
		{"with a timeout of zero", "&timeoutSeconds=0", 0, map[time.Duration][]string{21 * time.Second: {leaked}}},
	} {
		for at, want := range tt.want {
			t.Run(fmt.Sprint(tt.name, " after ", at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					scopes := probes.NewScopes()
					transport := probes.NewTransport(probes.LedgerOptions{Scopes: scopes})
					rt := transport.Wrap(roundTripFunc(func(*http.Request) (*http.Response, error) {
						return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&stream{})}, nil
					}))
					var bodies []io.Closer
					for range 4 {
						scopes.Scope("app").Do(t.Context(), func(ctx context.Context) {
							resp := roundTrip(t, ctx, rt, "https://host"+watchAll+tt.query) //nolint:bodyclose // left open on purpose
							bodies = append(bodies, resp.Body)
						})
					}
					transport.Read(t.Context(), nil)
					if tt.ends > 0 {
						time.AfterFunc(tt.ends, func() {
							for _, b := range bodies {
								_ = b.Close()
							}
						})
					}
					time.Sleep(at)
					if diff := cmp.Diff(want, verdicts(transport.Read(t.Context(), nil))); diff != "" {
						t.Errorf("readings (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// TestWatchesAtOnePlaceInAll opens three watches that the server never ends, one that is closed after 50 seconds, and two that
// the server still has to end. Until an open one is three times as old as the closed one it counts as neither lost nor about to end.
func TestWatchesAtOnePlaceInAll(t *testing.T) {
	for at, want := range map[time.Duration][]string{
		78 * time.Second:  {"watches left open until they time out: 5 of 5 in all"},
		100 * time.Second: {"watches left open until they time out: 2 of 5 in all"},
		151 * time.Second: {"watches left open: 3 of 3 in all", "watches left open until they time out: 2 of 2 in all"},
	} {
		t.Run(at.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scopes := probes.NewScopes()
				transport := probes.NewTransport(probes.LedgerOptions{Scopes: scopes})
				rt := transport.Wrap(roundTripFunc(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&stream{})}, nil
				}))
				for _, step := range []struct {
					n    int
					wait time.Duration
				}{{4, time.Second}, {0, at - 2*time.Second}, {2, time.Second}} {
					for i := range step.n {
						scopes.Scope("app").Do(t.Context(), func(ctx context.Context) {
							body := roundTrip(t, ctx, rt, "https://host"+watchAll+"&timeoutSeconds=60").Body //nolint:bodyclose // left open on purpose
							if step.n == 4 && i == 0 {
								time.AfterFunc(50*time.Second, func() { _ = body.Close() })
							}
						})
					}
					time.Sleep(step.wait)
					transport.Read(t.Context(), nil)
				}
				var got []string
				for _, r := range transport.Read(t.Context(), nil) {
					if r.Leaked || r.Bounded {
						got = append(got, fmt.Sprintf("%s: %v of %v in all", r.Resource, r.Count, r.InAll))
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("readings (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// stream has nothing to read yet.
type stream struct{}

func (*stream) Read([]byte) (int, error) { return 0, nil }

// verdicts gives the readings that say more than a number.
func verdicts(readings []probes.Reading) (out []string) {
	for _, r := range readings {
		switch {
		case r.Leaked:
			out = append(out, fmt.Sprintf("%s: %s %v leaked", r.Scope, r.Resource, r.Count))
		case r.Bounded:
			out = append(out, fmt.Sprintf("%s: %s %v bounded", r.Scope, r.Resource, r.Count))
		}
	}
	return out
}
