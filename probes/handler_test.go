package probes_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/probes"
)

// TestHandler serves a request whose handler leaves a goroutine behind.
func TestHandler(t *testing.T) {
	scopes := probes.NewScopes()
	release, wg := make(chan struct{}), &sync.WaitGroup{}
	h := probes.Handler(scopes.Scope("webhook"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, _, ok := probes.FromContext(r.Context()); !ok || name != "webhook" {
			t.Errorf("the request's context is of scope %q, %v", name, ok)
		}
		parkFrom(release, wg)
		w.(http.Flusher).Flush()
	}))
	srv := httptest.NewServer(h)
	defer srv.Close()
	_ = roundTrip(t, t.Context(), srv.Client().Transport, srv.URL).Body.Close()
	if controllers, _ := labelsOf(t, "probes_test.park"); !cmp.Equal([]string{"webhook"}, controllers) {
		t.Errorf("the goroutine left behind is labelled %q, want webhook", controllers)
	}
	close(release)
	wg.Wait()
	srv.Close() // which waits until the handler has returned: the answer came before that
	if open := scopes.InFlight(nil); len(open) != 0 {
		t.Errorf("in flight after the request: %v", open)
	}
}

// TestFunc runs a callback that panics and one that does not.
func TestFunc(t *testing.T) {
	scopes := probes.NewScopes()
	release, wg := make(chan struct{}), &sync.WaitGroup{}
	onAdd := probes.Func(scopes.Scope("events"), func(name string) {
		if name == "" {
			panic("no name")
		}
		parkFrom(release, wg)
	})
	onAdd("a")
	func() {
		defer func() { _ = recover() }()
		onAdd("")
	}()
	if controllers, _ := labelsOf(t, "probes_test.park"); !cmp.Equal([]string{"events"}, controllers) {
		t.Errorf("the goroutine left behind is labelled %q, want events", controllers)
	}
	close(release)
	wg.Wait()
	want := []probes.ScopeStats{{Scope: "events", Begun: 2, Ended: 2}}
	if diff := cmp.Diff(want, scopes.Stats(nil)); diff != "" {
		t.Errorf("Stats (-want +got):\n%s", diff)
	}
}

// TestResponseBodyInHandler leaves bodies open with no context passed on: the handler's function is on their stacks.
func TestResponseBodyInHandler(t *testing.T) {
	a := newAPI(t)
	h := probes.Handler(a.scopes.Scope("webhook"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		a.open(background, pods) //nolint:contextcheck // of no span on purpose
	}))
	for range 2 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	}
	a.want("after the requests", ": response bodies left open 2")
}
