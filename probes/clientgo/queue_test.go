package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

func newLimiter() workqueue.TypedRateLimiter[int] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[int](time.Millisecond, time.Second)
}

// TestQueueItemsNeverDone has a worker that forgets Done for some items, and twins: workers that are slow, ever more of
// them, and a dispatcher that hands slow items on.
func TestQueueItemsNeverDone(t *testing.T) {
	const rounds = 40 // a minute each
	for _, tt := range []struct {
		name string
		// serve takes what is in the queue; items take as long as they say.
		serve func(ctx context.Context, g *sync.WaitGroup, q workqueue.TypedRateLimitingInterface[int])
		leaks bool
	}{
		{"one worker forgets", func(_ context.Context, g *sync.WaitGroup, q workqueue.TypedRateLimitingInterface[int]) {
			g.Go(func() {
				for {
					item, shutdown := q.Get()
					if shutdown {
						return
					}
					if item%2 == 0 {
						q.Done(item)
					}
				}
			})
		}, true},
		{"ever more slow workers", func(ctx context.Context, g *sync.WaitGroup, q workqueue.TypedRateLimitingInterface[int]) {
			for i := range 60 {
				g.Go(func() {
					sleep(ctx, time.Duration(i)*time.Minute/2)
					for {
						item, shutdown := q.Get()
						if shutdown {
							return
						}
						if item%2 == 0 {
							sleep(ctx, 90*time.Minute)
						}
						q.Done(item)
					}
				})
			}
		}, false},
		{"a dispatcher", func(ctx context.Context, g *sync.WaitGroup, q workqueue.TypedRateLimitingInterface[int]) {
			g.Go(func() {
				for {
					item, shutdown := q.Get()
					if shutdown {
						return
					}
					g.Go(func() {
						defer q.Done(item)
						sleep(ctx, 6*time.Minute)
					})
				}
			})
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTracked()
				ctx, cancel := context.WithCancel(t.Context())
				q := clientgo.Queue(ctx, tr.resources, workqueue.NewTypedRateLimitingQueue(newLimiter()))
				var workers sync.WaitGroup
				tt.serve(ctx, &workers, q)
				found := -1
				for round := range rounds {
					q.Add(2 * round)
					q.Add(2*round + 1)
					time.Sleep(time.Minute)
					for _, r := range tr.resources.Read(ctx, nil) {
						switch {
						case !r.Leaked:
						case !tt.leaks:
							t.Errorf("minute %d: got leaked %s %v", round, r.Resource, r.Count)
						case r.Resource != "items never done":
							t.Errorf("minute %d: got leaked %s", round, r.Resource)
						case found < 0:
							found = round
						}
					}
				}
				if tt.leaks && (found < 10 || found > 22) {
					t.Errorf("found in minute %d, want 20: ten items and ten minutes", found)
				}
				q.ShutDown()
				cancel()
				workers.Wait()
				time.Sleep(time.Minute) // lets the queue's goroutine of delays end
			})
		})
	}
}

// sleep waits for a time or the end of a context.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// TestQueueItemsDone counts items in work by their number.
func TestQueueItemsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTracked()
		q := clientgo.Queue(t.Context(), tr.resources, workqueue.NewTypedRateLimitingQueue(newLimiter()))
		defer q.ShutDown()
		for i := range 1200 { // more than a queue asks in a second who got one
			q.Add(i)
		}
		for range 1200 {
			q.Get()
		}
		if n := count(t, tr.resources, "workqueue items in work"); n != 1200 {
			t.Errorf("%v items are in work, want 1200", n)
		}
		for i := range 1200 {
			q.Done(i)
			q.Done(i) // which is harmless
		}
		if n := count(t, tr.resources, "workqueue items in work"); n != -1 {
			t.Errorf("%v items are in work, want none", n)
		}
	})
}

func TestQueueKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTracked()
		q := clientgo.Queue(t.Context(), tr.resources, workqueue.NewTypedRateLimitingQueue(newLimiter()))
		defer q.ShutDown()
		const rounds, keys = 12, 12 * 400
		for round := range rounds {
			for i := range 400 {
				q.AddRateLimited(400*round + i)
				q.AddRateLimited(400*round + i)
			}
			want := []string(nil)
			if round >= 10 {
				want = []string{fmt.Sprintf(": rate-limited keys not forgotten %d climbs", 400*(round+1))}
			}
			wantLeaks(t, tr.resources, fmt.Sprint("round ", round), want...)
		}
		for i := range keys {
			q.Forget(i)
			q.Forget(i)
		}
		if n := count(t, tr.resources, "rate-limited keys not forgotten"); n != -1 {
			t.Errorf("%v keys are not forgotten", n)
		}
		time.Sleep(time.Minute) // lets the queue take in what it has delayed
	})
}

// TestQueueKeysOfObjects has fewer failing keys than there are objects, as while the API server is away.
func TestQueueKeysOfObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := probes.NewScopes()
		objects := probes.NewObjectIndex(scopes)
		defer objects.AddStore("job", func(yield func(namespace, name string) bool) {
			for i := range 5000 {
				if !yield("ns", strconv.Itoa(i)) {
					return
				}
			}
		})()
		objects.Saw("app", "job", scopes.Object("ns", "1"))
		objects.Refresh(time.Now())
		x := clientgo.NewResources(probes.LedgerOptions{})
		x.SetOptions(probes.LedgerOptions{Scopes: scopes, Objects: objects})
		q := clientgo.Queue(t.Context(), x, workqueue.NewTypedRateLimitingQueue(newLimiter()))
		defer q.ShutDown()
		for round := range 14 {
			for i := range 350 {
				q.AddRateLimited(350*round + i)
			}
			wantLeaks(t, x, fmt.Sprint("round ", round))
		}
		for i := range 200 {
			q.AddRateLimited(4900 + i)
		}
		wantLeaks(t, x, "more than there are objects", ": rate-limited keys not forgotten 5100 climbs")
		time.Sleep(time.Minute)
	})
}

// TestRateLimiter counts the keys of a limiter until it is gone.
func TestRateLimiter(t *testing.T) {
	x := clientgo.NewResources(probes.LedgerOptions{})
	const resource = "rate-limited keys not forgotten"
	l := clientgo.RateLimiter(x, "app", newLimiter())
	for round := range 16 {
		for i := range 250 {
			l.When(250*round + i)
			l.When(250*round + i)
		}
		wantLeaks(t, x, "of a controller")
	}
	if n := count(t, x, resource); n != 4000 {
		t.Errorf("got %v keys, want 4000", n)
	}
	for i := range 3999 {
		l.Forget(i)
		l.Forget(i)
	}
	if n := count(t, x, resource); n != 1 {
		t.Errorf("got %v keys, want 1", n)
	}
	if got := l.NumRequeues(3999); got != 2 {
		t.Errorf("got %d failures of the last, want 2", got)
	}
	runtime.KeepAlive(l)
	if err := collected(func() bool { return count(t, x, resource) == -1 }); err != nil {
		t.Error(err)
	}
}

// collected collects garbage until something holds, a few times.
func collected(holds func() bool) error {
	for range 20 {
		runtime.GC()
		if holds() {
			return nil
		}
	}
	return errors.New("it is still there after 20 collections")
}

// BenchmarkQueue is an item through a queue, bare and under account.
func BenchmarkQueue(b *testing.B) {
	x := clientgo.NewResources(probes.LedgerOptions{})
	for name, wrap := range map[string]func(workqueue.TypedRateLimitingInterface[int]) workqueue.TypedRateLimitingInterface[int]{
		"bare": func(q workqueue.TypedRateLimitingInterface[int]) workqueue.TypedRateLimitingInterface[int] { return q },
		"account": func(q workqueue.TypedRateLimitingInterface[int]) workqueue.TypedRateLimitingInterface[int] {
			return clientgo.Queue(b.Context(), x, q)
		},
	} {
		b.Run(name, func(b *testing.B) {
			q := wrap(workqueue.NewTypedRateLimitingQueue(newLimiter()))
			defer q.ShutDown()
			for i := range b.N {
				q.Add(i)
				item, _ := q.Get()
				q.Forget(item)
				q.Done(item)
			}
		})
	}
}
