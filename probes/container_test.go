package probes_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/leakguard/leakguard/probes"
)

// TestSize follows the size of a container over reads, with 20 live objects.
func TestSize(t *testing.T) {
	ramp := func(step, n int) (sizes []int) {
		for i := range n {
			sizes = append(sizes, i*step)
		}
		return sizes
	}
	for _, tt := range []struct {
		name  string
		sizes []int
		want  bool
	}{
		{"never emptied", ramp(50, 12), true},
		{"warms up and stays", append(ramp(200, 6), 1000, 1000, 1000, 1000, 1000, 1000, 1000), false},
		{"small", ramp(10, 14), false},
		{"has filled up", append(ramp(50, 12), slices.Repeat([]int{550}, 20)...), false},
		{"rests", append(append(ramp(50, 12), slices.Repeat([]int{550}, 15)...), 560), true},
		{"evicts", append(ramp(50, 9), 390, 440, 490, 540), false},
	} {
		scopes := probes.NewScopes()
		objects := probes.NewObjectIndex(scopes)
		store := storeOf{}
		for i := range 20 {
			store[strconv.Itoa(i)] = true
		}
		objects.AddStore("App", store.each)
		objects.Saw("app", "App", scopes.Object("ns", "0"))
		objects.Refresh(time.Now())
		size := 0
		c := probes.Size("podCache", func() int { return size }).For("app").Against(objects)
		var last probes.Reading
		for _, size = range tt.sizes {
			last = c.Read(t.Context(), nil)[0]
		}
		if last.Climbing != tt.want || last.Leaked || last.Count != float64(size) || last.Covariate != 20 || last.Resource != "entries of podCache" {
			t.Errorf("%s: %+v, want %d entries, 20 live, climbing %v", tt.name, last, size, tt.want)
		}
		if c.Name() != "pod_cache" {
			t.Errorf("name %q, want pod_cache", c.Name())
		}
	}
}

func TestContainerNames(t *testing.T) {
	for name, want := range map[string]string{
		"podCache": "pod_cache", "Pods by UID": "pods_by_uid", "cache-2": "cache_2", "HTTPCache": "httpcache", "x": "x", "größe": "gr_e",
	} {
		if got := probes.Size(name, func() int { return 0 }).Name(); got != want {
			t.Errorf("Size(%q) is named %q, want %q", name, got, want)
		}
	}
}

// staleAfter is for how many reads an object must have been gone.
const staleAfter = 30

// keysOf is a container by names and the stores that it is compared with.
type keysOf struct {
	objects *probes.ObjectIndex
	keys    storeOf
	probe   *probes.Container
}

func newKeysOf() keysOf {
	k := keysOf{objects: probes.NewObjectIndex(probes.NewScopes()), keys: storeOf{}}
	k.probe = probes.Keys("byPod", k.keys.each).For("app").Against(k.objects)
	return k
}

// read gives how many keys are stale after some reads, and whether they climb.
func (k *keysOf) read(t *testing.T, times int) (stale int, climbing bool) {
	t.Helper()
	for range times {
		k.objects.Refresh(time.Now())
		stale, climbing = 0, false
		for _, r := range k.probe.Read(t.Context(), nil) {
			if r.Resource == "stale entries of byPod" {
				stale, climbing = int(r.Count), r.Climbing
			}
			if r.Scope != "app" {
				t.Errorf("%s: scope %q, want app", r.Resource, r.Scope)
			}
		}
	}
	return stale, climbing
}

// TestKeys deletes objects whose keys stay in a container, or are deleted with them. No reconcile reads the kind.
func TestKeys(t *testing.T) {
	const rounds, told = 14, 10 // how slowly they come takes two rises to tell
	for _, evict := range []bool{false, true} {
		k, store := newKeysOf(), storeOf{}
		k.objects.AddStore("Pod", store.each)
		for i := range 10 * rounds {
			store[strconv.Itoa(i)], k.keys[strconv.Itoa(i)] = true, true
		}
		k.read(t, 1)
		for round := range rounds {
			for i := range 5 {
				name := strconv.Itoa(10*round + i)
				delete(store, name)
				if evict {
					delete(k.keys, name)
				}
			}
			if stale, _ := k.read(t, staleAfter-1); stale >= 5*(round+1) {
				t.Errorf("evict %v, round %d: %d stale before their time", evict, round, stale)
			}
			stale, climbing := k.read(t, 1)
			if want := !evict && round >= told; climbing != want || (!evict && stale != 5*(round+1)) {
				t.Errorf("evict %v, round %d: %d stale, climbing %v, want climbing %v", evict, round, stale, climbing, want)
			}
		}
	}
}

// TestStaleKeysAreOneLeak has a container of hundreds of stale keys and no others to speak of: its size has nothing to add.
func TestStaleKeysAreOneLeak(t *testing.T) {
	const objects = 400
	k, store := newKeysOf(), storeOf{}
	k.objects.AddStore("Pod", store.each)
	for i := range objects {
		name := strconv.Itoa(i)
		store[name], k.keys[name] = true, true
		k.read(t, 1)
		delete(store, name)
	}
	k.objects.Refresh(time.Now())
	for _, r := range k.probe.Read(t.Context(), nil) {
		stale := r.Resource == "stale entries of byPod"
		if r.Climbing != stale || r.Shown == stale || r.Count < objects-2*staleAfter {
			t.Errorf("%+v, want hundreds, and only the stale ones climb", r)
		}
	}
}

// TestKeysThatAreSwept has keys of objects that are gone, of which a janitor takes away the oldest now and then.
func TestKeysThatAreSwept(t *testing.T) {
	const objects = 400
	k, store := newKeysOf(), storeOf{}
	k.objects.AddStore("Pod", store.each)
	for i := range objects {
		store[strconv.Itoa(i)], k.keys[strconv.Itoa(i)] = true, true
	}
	k.read(t, 1)
	swept := 0
	for i := range objects {
		delete(store, strconv.Itoa(i))
		if _, climbing := k.read(t, 1); climbing && swept > 0 {
			t.Fatalf("after %d deletions and a sweep: climbing", i+1)
		}
		if i%100 == 99 {
			for ; swept < i-60; swept++ {
				delete(k.keys, strconv.Itoa(swept))
			}
		}
	}
	if stale, _ := k.read(t, 1); stale < staleAfter || swept == 0 {
		t.Errorf("%d stale after %d were swept, want some of both", stale, swept)
	}
}

// TestKeysThatStay has keys of many objects that go in some steps, and then no more: what was kept is not a leak that
// goes on.
func TestKeysThatStay(t *testing.T) {
	k, store := newKeysOf(), storeOf{}
	k.objects.AddStore("Pod", store.each)
	for i := range 100 {
		store[strconv.Itoa(i)], k.keys[strconv.Itoa(i)] = true, true
	}
	k.read(t, 1)
	for i := range 60 {
		if delete(store, strconv.Itoa(i)); i%4 == 0 {
			k.read(t, 1)
		}
	}
	if stale, climbing := k.read(t, staleAfter-1); stale < 50 || !climbing {
		t.Errorf("while they become more: %d stale, climbing %v, want climbing", stale, climbing)
	}
	if stale, climbing := k.read(t, staleAfter); stale != 60 || climbing {
		t.Errorf("when they do not: %d stale, climbing %v, want 60, not climbing", stale, climbing)
	}
}

// TestSizeShapes follows the size of a container that is compared with nothing.
func TestSizeShapes(t *testing.T) {
	wantShapes(t, func(t *testing.T) func(n int) probes.Reading {
		t.Helper()
		size := 0
		c := probes.Size("podCache", func() int { return size })
		return func(n int) probes.Reading {
			size = 100 + n
			return c.Read(t.Context(), nil)[0]
		}
	})
}

// TestKeysOfNobody has keys of which the stores tell nothing.
func TestKeysOfNobody(t *testing.T) {
	fill := func(s storeOf) {
		for i := range 50 {
			s[strconv.Itoa(i)] = true
		}
	}
	for name, play := range map[string]func(k *keysOf){
		"of objects that no informer watches": func(k *keysOf) {
			k.objects.AddStore("Other", storeOf{"other": true}.each)
		},
		"whose informer has stopped": func(k *keysOf) {
			store := storeOf{}
			fill(store)
			remove := k.objects.AddStore("Pod", store.each)
			k.read(t, 1)
			remove()
		},
		"whose informer has stopped and another begins": func(k *keysOf) {
			store := storeOf{}
			fill(store)
			remove := k.objects.AddStore("Pod", store.each)
			k.read(t, 1)
			remove()
			k.objects.AddStore("Pod", storeOf{}.each)
		},
		"whose objects come back": func(k *keysOf) {
			store := storeOf{}
			fill(store)
			k.objects.AddStore("Pod", store.each)
			k.read(t, 1)
			clear(store)
			k.read(t, staleAfter-1)
			fill(store)
		},
		"without anything to compare with": func(k *keysOf) { k.probe = probes.Keys("byPod", k.keys.each).For("app") },
	} {
		k := newKeysOf()
		fill(k.keys)
		play(&k)
		if stale, climbing := k.read(t, 3*staleAfter); stale != 0 || climbing {
			t.Errorf("keys %s: %d stale, climbing %v, want none", name, stale, climbing)
		}
	}
	// One informer that stops does not hide what was known before.
	k, store := newKeysOf(), storeOf{}
	fill(k.keys)
	fill(store)
	k.objects.AddStore("Pod", store.each)
	remove := k.objects.AddStore("Other", storeOf{"other": true}.each)
	k.read(t, 1)
	clear(store)
	k.read(t, 2)
	remove()
	if stale, _ := k.read(t, staleAfter); stale != 50 {
		t.Errorf("keys whose objects were gone before another informer stopped: %d stale, want 50", stale)
	}
}

// TestKeysOutgrow has a container of ever new keys of objects that live too shortly to be seen.
func TestKeysOutgrow(t *testing.T) {
	k := newKeysOf()
	for round := range 12 {
		for i := range 20 {
			k.keys[strconv.Itoa(100*round+i)] = true
		}
		last := k.probe.Read(t.Context(), nil)
		if want := round >= 10; len(last) != 1 || last[0].Climbing != want || last[0].Leaked {
			t.Errorf("round %d: %+v, want one reading that climbs: %v", round, last, want)
		}
	}
}

// TestSetCompares gives the containers of a set its objects, but for one that has its own.
func TestSetCompares(t *testing.T) {
	scopes := probes.NewScopes()
	theirs, own := probes.NewObjectIndex(scopes), probes.NewObjectIndex(scopes)
	for objects, names := range map[*probes.ObjectIndex]storeOf{theirs: {"a": true}, own: {"a": true, "b": true}} {
		objects.AddStore("App", names.each)
		objects.Saw("app", "App", scopes.Object("ns", "a"))
		objects.Refresh(time.Now())
	}
	size := func() int { return 7 }
	set, err := probes.NewSet(0, probes.Size("before", size), probes.Size("chosen", size).Against(own))
	if err != nil {
		t.Fatal(err)
	}
	live := func() (out []float64) {
		for _, r := range set.Read(t.Context(), nil) {
			out = append(out, r.Covariate)
		}
		return out
	}
	set.Against(theirs)
	if _, err = set.Add(probes.Size("after", size)); err != nil {
		t.Fatal(err)
	}
	if got := live(); !slices.Equal(got, []float64{1, 2, 1}) {
		t.Errorf("compared with %v live objects, want 1, 2 and 1", got)
	}
	set.Against(nil)
	if got := live(); !slices.Equal(got, []float64{-1, 2, -1}) {
		t.Errorf("compared with %v live objects, want -1, 2 and -1", got)
	}
}
