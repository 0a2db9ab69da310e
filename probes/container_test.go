package probes_test

import (
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
		c := probes.Size("podCache", func() int { return size }).Against(objects, "app")
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

// TestKeys deletes objects whose keys stay in a container, or are deleted with them.
func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		name  string
		evict bool
		want  []bool
	}{
		{"keys stay", false, []bool{false, false, true, true}},
		{"keys go", true, []bool{false, false, false, false}},
	} {
		scopes := probes.NewScopes()
		objects := probes.NewObjectIndex(scopes)
		store, keys := storeOf{}, storeOf{}
		objects.AddStore("App", store.each)
		for i := range 100 {
			store[strconv.Itoa(i)], keys[strconv.Itoa(i)] = true, true
		}
		c := probes.Keys("byPod", keys.each).Against(objects, "")
		if got := c.Read(t.Context(), nil); len(got) != 1 || got[0].Covariate != -1 || got[0].Count != 100 {
			t.Errorf("%s: with no objects known: %+v, want 100 entries and nothing stale", tt.name, got)
		}
		objects.Saw("app", "App", scopes.Object("ns", "0"))
		for round, want := range tt.want {
			for i := range 5 {
				name := strconv.Itoa(10*round + i)
				delete(store, name)
				if tt.evict {
					delete(keys, name)
				}
			}
			objects.Refresh(time.Now())
			leaked, stale := false, 0.0
			for _, r := range c.Read(t.Context(), nil) {
				if r.Resource == "stale entries of byPod" {
					leaked, stale = r.Leaked, r.Count
				}
			}
			if leaked != want || (!tt.evict && stale != float64(5*(round+1))) {
				t.Errorf("%s, round %d: %v stale, leaked %v, want leaked %v", tt.name, round, stale, leaked, want)
			}
		}
	}
}
