package clientgo_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// grow gives how many more there are at each read: one at each of so many, with some reads between.
func grow(rises, every int) (more []int) {
	for range rises {
		more = append(append(more, 1), make([]int, every-1)...)
	}
	return more
}

// growths are a leak, quick or slow, and numbers that stay where they have arrived.
func growths() []growth {
	rest := func(more ...int) []int { return append(more, make([]int, 200)...) }
	return []growth{
		{"a leak", grow(30, 1), true, true},
		{"a slow leak", grow(15, 30), true, true},
		{"a step and a plateau", rest(0, 0, 30), false, false},
		{"a warm-up and a plateau", rest(grow(9, 1)...), false, false},
		{"a fleet that grows and a plateau", rest(grow(20, 8)...), true, false},
		{"a fleet that grows slowly and a plateau", rest(grow(15, 30)...), true, false},
	}
}

// growth is how many more there are at each read.
type growth struct {
	name   string
	more   []int
	climbs bool // they may be called climbing while they grow
	leak   bool // they are when all has been read
}

// wantGrowths reads a probe after each step of each growth: follow makes the probe, and grow makes so many more of what it counts.
func wantGrowths(t *testing.T, resource string, follow func(t *testing.T) (p probes.Probe, grow func(n int))) {
	t.Helper()
	for _, g := range growths() {
		t.Run(g.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, grow := follow(t)
				climbing, counted := false, false
				for i, more := range g.more {
					grow(more)
					climbing = false
					for _, r := range readings(t, p) {
						counted = counted || strings.HasPrefix(r.Resource, resource)
						climbing = climbing || r.Climbing
						if r.Leaked || (r.Climbing && !g.climbs) {
							t.Fatalf("read %d: %+v", i, r)
						}
					}
				}
				if climbing != g.leak || !counted {
					t.Errorf("at the end: climbing %t, counted %t, want %t, true", climbing, counted, g.leak)
				}
			})
		})
	}
}

// TestInformersGrow runs informers of one kind and cache; nothing is known of objects.
func TestInformersGrow(t *testing.T) {
	wantGrowths(t, "informers of v1.Pod", func(t *testing.T) (probes.Probe, func(n int)) {
		t.Helper()
		w := newWorld(t)
		return w.informers, func(n int) {
			for range n {
				_, stop := w.start(newPods())
				t.Cleanup(stop)
			}
		}
	})
}

// TestFleetOfClusters has a cache for each of ever more clusters, with an informer of one kind in each.
func TestFleetOfClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for cluster := range 40 {
			w.newCache()
			_, stop := w.start(newPods())
			defer stop()
			for _, r := range readings(t, w.informers) {
				if r.Climbing || r.Leaked || (cluster > 0 && r.Resource == "informers of v1.Pod" && r.Covariate < r.Count) {
					t.Errorf("with %d clusters: %+v", cluster+1, r)
				}
			}
		}
	})
}

// TestQueueGrows has keys that fail.
func TestQueueGrows(t *testing.T) {
	wantGrowths(t, "rate-limited keys", func(t *testing.T) (probes.Probe, func(n int)) {
		t.Helper()
		tr := newTracked()
		q := clientgo.Queue(t.Context(), tr.resources, workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[int](0, 0)))
		t.Cleanup(q.ShutDown)
		key := 0
		return tr.resources, func(n int) {
			for range 200 * n {
				key++
				q.AddRateLimited(key)
			}
		}
	})
}

// TestPendingGrows has a handler that does not return. What waits for it and becomes no more is no leak that goes on.
func TestPendingGrows(t *testing.T) {
	wantGrowths(t, "", func(t *testing.T) (probes.Probe, func(n int)) {
		t.Helper()
		w := newWorld(t)
		p := newPods("a")
		i, stop := w.start(p)
		release := make(chan struct{})
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { <-release }}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { close(release); stop() })
		version := 1
		return w.informers, func(n int) {
			for range 150 * n {
				version++
				p.watch.Modify(pod("a", version))
				synctest.Wait()
			}
		}
	})
}
