package probes_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/probes"
)

// TestDiscoveries asks for the whole API in reconciles, between reads that come after so many reconciles each.
func TestDiscoveries(t *testing.T) {
	const often, reads = 10, 8
	for _, tt := range []struct {
		name     string
		discover func(reconcile int) bool
		want     []bool // after each read
	}{
		{"in each", func(int) bool { return true }, []bool{false, false, false, true, true, true, true, true}},
		{"in every second", func(n int) bool { return n%2 == 0 }, []bool{false, false, false, true, true, true, true, true}},
		{"in every tenth, for kinds that are new", func(n int) bool { return n%10 == 0 }, make([]bool, reads)},
		{"at first", func(n int) bool { return n < 3*often }, make([]bool, reads)},
	} {
		a := newAPI(t)
		ask := func(ctx context.Context) { _ = roundTrip(t, ctx, a.rt, a.url+"/apis").Body.Close() }
		for read, want := range tt.want {
			for i := range often {
				a.reconcile("a", func(ctx context.Context) {
					if tt.discover(read*often + i) {
						ask(ctx)
					}
				})
			}
			if r, ok := find(t, a.transport, "API discoveries"); !ok || r.Bounded != want || r.Climbing || r.Leaked || !r.Total {
				t.Errorf("%s, read %d: got %v discoveries, bounded %v, want %v and no alarm: %+v", tt.name, read, r.Count, r.Bounded, want, r)
			}
		}
		for range 20 { // it has stopped
			find(t, a.transport, "API discoveries")
		}
		if r, _ := find(t, a.transport, "API discoveries"); r.Bounded {
			t.Errorf("%s: %v discoveries are listed although there were none of late", tt.name, r.Count)
		}
	}
}

// discover asks for the whole API without saying for whom.
func (a *api) discover() { _ = roundTrip(a.t, background, a.rt, a.url+"/apis").Body.Close() }

// makeClient makes a client that shares its transport.
func (a *api) makeClient(shared *http.Transport) { a.transport.Wrap(shared) }

// TestWhoMakesClients has three controllers: one makes a client and discovers the API in each of its few reconciles, by the
// context or by the function that is known for its own, and the others do not.
func TestWhoMakesClients(t *testing.T) {
	a := newAPI(t)
	const method = "github.com/leakguard/leakguard/probes_test.(*api)."
	a.scopes.Claim(method+"discover", "maker")
	a.scopes.Claim(method+"makeClient", "maker")
	shared := &http.Transport{}
	ask := func(ctx context.Context) { _ = roundTrip(t, ctx, a.rt, a.url+"/api").Body.Close() }
	var last []probes.Reading
	for range 8 {
		for i := range 50 {
			a.scopes.Scope("busy").Do(t.Context(), func(context.Context) {})
			if i%10 == 0 {
				a.scopes.Scope("maker").Do(t.Context(), func(context.Context) { a.discover(); a.makeClient(shared) }) //nolint:contextcheck // on purpose
				a.scopes.Scope("asker").Do(t.Context(), ask)
			}
		}
		last = a.transport.Read(t.Context(), nil)
	}
	got := map[string]string{}
	for _, r := range last {
		if r.Scope != "" && (r.Resource == "API discoveries" || r.Resource == "HTTP clients made") {
			_, function, _ := strings.Cut(r.Culprit.Function, "probes_test.")
			got[r.Scope+": "+r.Resource] = fmt.Sprint(r.Count, " ", r.Bounded, " ", function)
		}
	}
	want := map[string]string{
		"maker: API discoveries": "40 true roundTrip", "maker: HTTP clients made": "40 false (*api).makeClient", "asker: API discoveries": "40 true roundTrip",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("who made what (-want +got):\n%s", d)
	}
	_ = shared.DisableKeepAlives // it lives until here
}
