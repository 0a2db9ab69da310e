package probes_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/probes"
)

// streams is a transport under account whose responses stay open, with a grace of ten seconds, in a synctest bubble.
type streams struct {
	t         *testing.T
	scopes    *probes.Scopes
	transport *probes.Transport
	rt        http.RoundTripper
}

func newStreams(t *testing.T) *streams {
	t.Helper()
	s := &streams{t: t, scopes: probes.NewScopes()}
	s.transport = probes.NewTransport(probes.LedgerOptions{Scopes: s.scopes, Grace: 10 * time.Second})
	s.rt = s.transport.Wrap(roundTripFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{Body: io.NopCloser(strings.NewReader("x"))}, nil
	}))
	return s
}

func (s *streams) open(ctx context.Context, path string) io.Closer {
	return roundTrip(s.t, ctx, s.rt, "http://api.example.com"+path).Body
}

// openIn opens a body in a span of a scope, which ends.
func (s *streams) openIn(scope, path string) (body io.Closer) {
	s.scopes.Scope(scope).Do(s.t.Context(), func(ctx context.Context) { body = s.open(ctx, path) })
	return body
}

// named gives the reading of a resource, the zero one for none.
func (s *streams) named(resource string) probes.Reading {
	for _, r := range s.transport.Read(s.t.Context(), nil) {
		if r.Resource == resource {
			return r
		}
	}
	return probes.Reading{}
}

// TestOpenBodiesAreNamed has what a person gets to see of each: what for, whose, since when, whether its work goes on, and
// who opened it, without the names of objects.
func TestOpenBodiesAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreams(t)
		s.openIn("app", "/apis/apps/v1/namespaces/secret/deployments/secret/status")
		time.Sleep(5 * time.Second)
		s.open(t.Context(), "/api/v1/namespaces/secret/pods?labelSelector=app%3Dsecret,tier+in+(secret,secrets),!old&fieldSelector=metadata.name%3Dsecret")
		time.Sleep(10 * time.Second)
		s.open(t.Context(), "/api/v1/nodes") // younger than the grace
		s.openIn("app", "/api/v1/services")

		r := s.named("response bodies")
		got := make([]string, 0, len(r.Open))
		for _, o := range r.Open {
			got = append(got, fmt.Sprintf("%s|%s|%v|%v", o.What, o.Scope, o.Ended, o.Age))
			if !strings.HasSuffix(o.Culprit.Function, "probes_test.roundTrip") || len(o.Stack) < 2 {
				t.Errorf("%s: culprit %v and %d calls, want the function that opened it and its callers", o.What, o.Culprit, len(o.Stack))
			}
		}
		want := []string{"GET deployments.apps/status|app|true|15s", "GET pods by label app, label tier, label old, field metadata.name||false|10s"}
		if d := cmp.Diff(want, got); d != "" || r.Count != 4 {
			t.Errorf("%v bodies, want 4; those that are named (-want +got):\n%s", r.Count, d)
		}
	})
}

// TestOpenBodiesAreBounded opens more than are named: those that were left open go first.
func TestOpenBodiesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreams(t)
		for range 40 {
			s.open(t.Context(), "/api/v1/pods")
			time.Sleep(time.Second)
		}
		s.openIn("app", "/api/v1/services")
		time.Sleep(10 * time.Second)
		open := s.named("response bodies").Open
		if len(open) != 16 || open[0].What != "GET services" || open[1].Age != 50*time.Second {
			t.Errorf("%d bodies are named, the first is %+v, want 16, first the one left open, then the oldest", len(open), open[0])
		}
		if !slices.IsSortedFunc(open[1:], func(a, b probes.Opened) int { return int(b.Age - a.Age) }) {
			t.Error("the bodies are not named by their age, oldest first")
		}
	})
}

const watchMaps = "/api/v1/namespaces/a/configmaps?watch=true&labelSelector=app%3Dsecret"

// TestTwoWatchesAreListed opens two watches of one selection at different calls, in each way that is no leak by the number.
func TestTwoWatchesAreListed(t *testing.T) {
	const several = "several: watch configmaps"
	for _, test := range []struct {
		name string
		open func(s *streams)
		want string // count, listed, scopes
	}{
		{"two callers", func(s *streams) { s.open(s.t.Context(), watchMaps); s.open(s.t.Context(), watchMaps) }, "2 true [ ]"},
		{"left open by two controllers", func(s *streams) { s.openIn("app", watchMaps); s.openIn("other", watchMaps) }, "2 true [app other]"},
		{"a cache, and one left open", func(s *streams) { s.open(s.t.Context(), watchMaps); s.openIn("app", watchMaps) }, "2 true [app ]"},
		{"one", func(s *streams) { s.open(s.t.Context(), watchMaps) }, "0 false []"},
		{"one left open", func(s *streams) { s.openIn("app", watchMaps) }, "0 false []"},
		{"different selectors", func(s *streams) { s.open(s.t.Context(), watchMaps); s.open(s.t.Context(), watchMaps+"s") }, "0 false []"},
		{"a cache, and a lease that is read", func(s *streams) {
			s.open(s.t.Context(), watchMaps)
			_ = s.open(s.t.Context(), "/apis/coordination.k8s.io/v1/namespaces/a/leases/app").Close()
		}, "0 false []"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStreams(t)
				test.open(s)
				time.Sleep(10 * time.Second)
				for range 10 { // the number alone never is a leak
					r := s.named(several)
					scopes := make([]string, 0, len(r.Open))
					for _, o := range r.Open {
						scopes = append(scopes, o.Scope)
					}
					if got := fmt.Sprint(r.Count, r.Listed, scopes); got != test.want || r.Leaked || r.Climbing {
						t.Errorf("got %s, leaked %v, climbing %v, want %s and neither", got, r.Leaked, r.Climbing, test.want)
					}
					if r.Listed && (strings.Contains(r.Reason, "secret") || !strings.Contains(r.Reason, "watch configmaps by label app") || strings.Count(r.Reason, " ago at ") != 2) {
						t.Errorf("reason %q, want resource, label's name and both calls with their ages, and no values", r.Reason)
					}
					time.Sleep(10 * time.Second)
				}
			})
		})
	}
}

// TestWatchThatIsOpenedAgain overlaps with its predecessor for some seconds each time, as when connections are slow to end.
func TestWatchThatIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreams(t)
		last := s.open(t.Context(), watchMaps)
		for range 20 {
			time.Sleep(time.Minute)
			next := s.open(t.Context(), watchMaps)
			time.Sleep(5 * time.Second)
			if r := s.named("several: watch configmaps"); r.Listed || r.Leaked {
				t.Fatalf("a watch that is opened again: %s", r.Reason)
			}
			_ = last.Close()
			last = next
		}
	})
}
