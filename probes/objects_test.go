package probes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leakguard/leakguard/probes"
)

// storeOf is an informer's store that a test changes.
type storeOf map[string]bool

func (s storeOf) each(yield func(namespace, name string) bool) {
	for name := range s {
		if !yield("ns", name) {
			return
		}
	}
}

func TestObjectIndex(t *testing.T) {
	scopes := probes.NewScopes()
	x := probes.NewObjectIndex(scopes)
	apps, other := storeOf{"a": true, "b": true}, storeOf{"x": true}
	x.AddStore("App", apps.each)
	x.AddStore("Other", other.each)
	a, b, key := scopes.Object("ns", "a"), scopes.Object("ns", "b"), scopes.Object("", "synthetic")
	t0 := time.Unix(1000, 0)
	check := func(step, scope string, o probes.Object, want probes.ObjectState, since time.Time) {
		t.Helper()
		if state, at := x.State(scope, o); state != want || !at.Equal(since) {
			t.Errorf("%s: State(%s, %d) = %v since %v, want %v since %v", step, scope, o, state, at, want, since)
		}
	}
	if n, ok := x.Live("app"); ok || n != 0 {
		t.Errorf("Live before anything was seen = %d, %v, want 0, false", n, ok)
	}

	x.Saw("app", "App", a)
	check("before a refresh", "app", a, probes.ObjectUnknown, time.Time{})
	x.Refresh(t0)
	check("a was seen", "app", a, probes.ObjectLive, time.Time{})
	check("b is in the store of a kind that the scope reads", "app", b, probes.ObjectLive, time.Time{})
	check("no object at all", "app", key, probes.ObjectUnknown, time.Time{})
	check("another scope", "idle", a, probes.ObjectUnknown, time.Time{})
	if n, ok := x.Live("app"); !ok || n != 2 {
		t.Errorf("Live = %d, %v, want 2, true", n, ok)
	}
	if n := x.Total(); n != 2 {
		t.Errorf("Total = %d, want the 2 of the kind that matters", n)
	}

	delete(apps, "a")
	delete(apps, "b")
	x.Refresh(t0.Add(time.Minute))
	x.Refresh(t0.Add(2 * time.Minute))
	check("a was deleted", "app", a, probes.ObjectGone, t0.Add(time.Minute))
	check("b went and was never seen by its reconcile", "app", b, probes.ObjectUnknown, time.Time{})

	apps["a"] = true
	x.Refresh(t0.Add(3 * time.Minute))
	check("a is back", "app", a, probes.ObjectLive, time.Time{})
	delete(apps, "a")
	x.Refresh(t0.Add(4 * time.Minute))
	check("a went again", "app", a, probes.ObjectGone, t0.Add(4*time.Minute))
}

func TestObjectIndexJoinsStoresOfOneKind(t *testing.T) {
	scopes := probes.NewScopes()
	x := probes.NewObjectIndex(scopes)
	blue, green := storeOf{"a": true}, storeOf{"b": true}
	x.AddStore("App", blue.each)
	x.AddStore("App", green.each)
	x.Saw("app", "App", scopes.Object("ns", "b"))
	x.Refresh(time.Unix(1, 0))
	if n, _ := x.Live("app"); n != 2 {
		t.Errorf("Live = %d, want 2 of two stores", n)
	}
	delete(green, "b")
	x.Refresh(time.Unix(2, 0))
	if state, _ := x.State("app", scopes.Object("ns", "b")); state != probes.ObjectGone {
		t.Errorf("State = %v, want gone", state)
	}
}

// TestObjectIndexIsBounded sees three generations of objects: the oldest is forgotten, what is seen again is kept.
func TestObjectIndexIsBounded(t *testing.T) {
	const generation = 16_384
	scopes := probes.NewScopes()
	x := probes.NewObjectIndex(scopes)
	apps := storeOf{}
	x.AddStore("App", apps.each)
	name := func(i int) string { return fmt.Sprint("app-", i) }
	for i := range 2 * generation {
		apps[name(i)] = true
	}
	for i := range generation {
		x.Saw("app", "App", scopes.Object("ns", name(i)))
	}
	x.Saw("app", "App", scopes.Object("ns", name(generation))) // opens the second generation
	x.Saw("app", "App", scopes.Object("ns", name(0)))          // and takes this one along
	for i := range generation - 1 {
		x.Saw("app", "App", scopes.Object("ns", name(generation+1+i))) // opens the third
	}
	x.Refresh(time.Unix(1, 0))
	clear(apps)
	x.Refresh(time.Unix(2, 0))
	states := map[probes.ObjectState]int{}
	for i := range 2 * generation {
		state, _ := x.State("app", scopes.Object("ns", name(i)))
		states[state]++
	}
	if states[probes.ObjectGone] > 2*generation || states[probes.ObjectGone] < generation || states[probes.ObjectUnknown] == 0 {
		t.Errorf("states %v: want at most two generations known, and one at least", states)
	}
	if state, _ := x.State("app", scopes.Object("ns", name(0))); state != probes.ObjectGone {
		t.Errorf("the object that was seen again is %v, want gone", state)
	}
	if state, _ := x.State("app", scopes.Object("ns", name(1))); state != probes.ObjectUnknown {
		t.Errorf("the object of the oldest generation is %v, want unknown", state)
	}
}

func TestObjectIndexRemovesStores(t *testing.T) {
	scopes := probes.NewScopes()
	x := probes.NewObjectIndex(scopes)
	x.AddStore("App", storeOf{"a": true}.each)
	remove := x.AddStore("App", storeOf{"b": true}.each)
	removeOnly := x.AddStore("Tenant", storeOf{"t": true}.each)
	x.Saw("tenant", "Tenant", scopes.Object("ns", "t"))
	x.Saw("app", "App", scopes.Object("ns", "b"))
	x.Refresh(time.Unix(1, 0))
	remove()
	remove()
	x.Refresh(time.Unix(2, 0))
	if n, ok := x.Live("app"); n != 1 || !ok {
		t.Errorf("Live = %d, %v after a store was removed, want 1, true", n, ok)
	}
	removeOnly()
	x.Refresh(time.Unix(3, 0))
	if state, _ := x.State("tenant", scopes.Object("ns", "t")); state != probes.ObjectUnknown {
		t.Errorf("State = %v when the informer has stopped, want unknown", state)
	}
}

func TestObjectStateString(t *testing.T) {
	for s, want := range map[probes.ObjectState]string{probes.ObjectUnknown: "unknown", probes.ObjectLive: "live", probes.ObjectGone: "gone", 9: "gone"} {
		if got := s.String(); got != want {
			t.Errorf("ObjectState(%d) = %q, want %q", s, got, want)
		}
	}
}
