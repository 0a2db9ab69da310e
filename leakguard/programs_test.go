package leakguard_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/leakguard"
)

// The programs of this file are the kinds that telling a leak from load was measured on. They all run at the same time,
// under one guard, in real time because a guard reads the real goroutine profile; programScale makes minutes seconds.
const programScale = 0.05

// minute and second are those of the guard's scaled time.
const (
	second = time.Duration(float64(time.Second) * programScale)
	minute = 60 * second
)

// They run under a guarded manager: what they make of clients and informers, its probes keep account of.

// program runs until ctx ends; what it leaves behind must end when ctx does, too.
type program struct {
	name  string
	leaks bool // a firing finding must name it
	run   func(ctx context.Context, p *env)
}

// env is what a program has.
type env struct {
	name string
	wg   *sync.WaitGroup
	mgr  *leakguard.Manager
}

// every calls f each d until ctx ends.
func every(ctx context.Context, d time.Duration, f func(n int)) {
	t := time.NewTicker(d)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f(n)
		}
	}
}

// pause waits for d; it reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// reconciles calls f once a scaled second as a reconcile of the program's controller, over the given number of objects.
func (p *env) reconciles(ctx context.Context, objects int, f func(ctx context.Context, object int)) {
	p.reconcilesEach(ctx, second, objects, f)
}

// leaks calls f as a reconcile of one of five objects, once in five scaled seconds: all that the programs leak together must not
// keep the machine from taking the samples.
func (p *env) leaks(ctx context.Context, f func(ctx context.Context)) {
	p.reconcilesEach(ctx, 5*second, 5, func(ctx context.Context, _ int) { f(ctx) })
}

func (p *env) reconcilesEach(ctx context.Context, d time.Duration, objects int, f func(ctx context.Context, object int)) {
	object := 0
	r := leakguard.Reconciler(p.name, reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		f(ctx, object)
		return reconcile.Result{}, nil
	}))
	every(ctx, d, func(n int) {
		object = n % objects
		_, _ = r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: fmt.Sprint(p.name, object)}})
	})
}

func (p *env) goes(f func()) { p.wg.Go(f) }

// leaking are programs that leak one goroutine in five scaled seconds.
func leaking() []program {
	global := make(chan int)
	return []program{
		{"leak-private-channel", true, func(ctx context.Context, p *env) {
			p.leaks(ctx, func(context.Context) { p.goes(func() { leakPrivateChannel(ctx) }) })
		}},
		{"leak-global-channel", true, func(ctx context.Context, p *env) {
			p.leaks(ctx, func(context.Context) { p.goes(func() { leakGlobalChannel(ctx, global) }) })
		}},
		{"leak-ticker", true, func(ctx context.Context, p *env) {
			p.leaks(ctx, func(context.Context) { p.goes(func() { leakTicker(ctx) }) })
		}},
		{"leak-poll", true, func(ctx context.Context, p *env) {
			p.leaks(ctx, func(context.Context) { p.goes(func() { leakPoll(ctx) }) })
		}},
		{"leak-waitgroup", true, func(ctx context.Context, p *env) {
			p.leaks(ctx, func(context.Context) { p.goes(func() { leakWaitGroup(ctx) }) })
		}},
		{"leak-unlabelled", true, func(ctx context.Context, p *env) {
			every(ctx, 5*second, func(int) { p.goes(func() { leakUnlabelled(ctx) }) })
		}},
		{"leak-other-labels", true, func(ctx context.Context, p *env) {
			p.leaks(ctx, func(context.Context) {
				pprof.Do(context.WithoutCancel(ctx), pprof.Labels("mine", "x"), func(context.Context) { p.goes(func() { leakOtherLabels(ctx) }) })
			})
		}},
		{"leak-afterfunc", true, func(ctx context.Context, p *env) {
			p.leaks(ctx, func(context.Context) {
				p.wg.Add(1)
				time.AfterFunc(second/10, func() { defer p.wg.Done(); leakAfterFunc(ctx) })
			})
		}},
	}
}

func leakPrivateChannel(ctx context.Context) { <-ctx.Done() }
func leakWaitGroup(ctx context.Context)      { <-ctx.Done() }
func leakUnlabelled(ctx context.Context)     { <-ctx.Done() }
func leakOtherLabels(ctx context.Context)    { <-ctx.Done() }
func leakAfterFunc(ctx context.Context)      { <-ctx.Done() }
func leakTicker(ctx context.Context)         { every(ctx, 10*second, func(int) {}) }

func leakGlobalChannel(ctx context.Context, c chan int) {
	select {
	case c <- 1:
	case <-ctx.Done():
	}
}

func leakPoll(ctx context.Context) {
	for pause(ctx, 5*second) {
	}
}

// benign are programs that only look like leaks.
func benign() []program {
	return slices.Concat(benignReconciles(), benignBackground(), benignLibraries(), benignLazily(), benignClients(), benignAccounted())
}

func benignReconciles() []program {
	return []program{
		{"worker-per-object", false, func(ctx context.Context, p *env) {
			started := map[int]bool{}
			p.reconciles(ctx, 60, func(_ context.Context, object int) {
				if !started[object] {
					started[object] = true
					p.goes(func() { <-ctx.Done() })
				}
			})
		}},
		{"worker-per-object-with-churn", false, func(ctx context.Context, p *env) {
			stop := map[int]context.CancelFunc{}
			p.reconciles(ctx, 40, func(_ context.Context, object int) {
				if cancel := stop[object]; cancel != nil {
					cancel()
				}
				worker, cancel := context.WithCancel(ctx)
				stop[object] = cancel
				p.goes(func() { <-worker.Done() })
			})
			for _, cancel := range stop {
				cancel()
			}
		}},
		{"lazy-singleton", false, func(ctx context.Context, p *env) {
			var once sync.Once
			p.reconciles(ctx, 5, func(context.Context, int) {
				once.Do(func() {
					for range 4 {
						p.goes(func() { <-ctx.Done() })
					}
				})
			})
		}},
		{"jobs-that-outlive", false, func(ctx context.Context, p *env) {
			p.reconciles(ctx, 5, func(context.Context, int) { p.goes(func() { pause(ctx, 2*minute) }) })
		}},
		{"bounded-work", false, func(ctx context.Context, p *env) {
			p.reconciles(ctx, 5, func(context.Context, int) { p.goes(func() { pause(ctx, 5*second) }) })
		}},
		{"back-pressure", false, func(ctx context.Context, p *env) {
			queue := make(chan int)
			p.goes(func() { // reads nothing for three minutes, then everything
				if !pause(ctx, 3*minute) {
					return
				}
				for {
					select {
					case <-queue:
					case <-ctx.Done():
						return
					}
				}
			})
			p.reconciles(ctx, 5, func(context.Context, int) {
				p.goes(func() {
					select {
					case queue <- 1:
					case <-ctx.Done():
					}
				})
			})
		}},
		{"long-back-off", false, func(ctx context.Context, p *env) {
			busy := map[int]bool{}
			p.reconciles(ctx, 5, func(_ context.Context, object int) {
				if !busy[object] {
					busy[object] = true
					p.goes(func() { pause(ctx, time.Hour) })
				}
			})
		}},
		{"exec", false, func(ctx context.Context, p *env) {
			p.reconciles(ctx, 5, func(ctx context.Context, _ int) { _ = exec.CommandContext(ctx, "true").Run() })
		}},
	}
}

func benignBackground() []program {
	return []program{
		{"idle-pool", false, func(ctx context.Context, p *env) {
			for range 200 {
				p.goes(func() { <-ctx.Done() })
			}
			<-ctx.Done()
		}},
		{"tickers", false, func(ctx context.Context, p *env) {
			for range 50 {
				p.goes(func() { every(ctx, second, func(int) {}) })
			}
			<-ctx.Done()
		}},
		{"burst", false, func(ctx context.Context, p *env) {
			if !pause(ctx, minute) {
				return
			}
			for range 5000 {
				p.goes(func() { pause(ctx, 30*second) })
			}
			<-ctx.Done()
		}},
		{"ramp-to-a-plateau", false, func(ctx context.Context, p *env) {
			n := 0
			every(ctx, second, func(int) {
				if n++; n < 120 {
					p.goes(func() { <-ctx.Done() })
				}
			})
		}},
		{"limited-workers", false, func(ctx context.Context, p *env) {
			limit := make(chan struct{}, 10)
			every(ctx, second/5, func(int) {
				select {
				case limit <- struct{}{}:
					p.goes(func() { pause(ctx, 3*second); <-limit })
				default:
				}
			})
		}},
		{"keep-alive", false, func(ctx context.Context, p *env) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
			defer server.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			client := p.client(transport)
			every(ctx, second, func(int) { fetch(ctx, client, server.URL) })
		}},
		{"long-polls", false, func(ctx context.Context, p *env) {
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				select {
				case <-r.Context().Done():
				case <-ctx.Done():
				}
			}))
			defer server.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			client := p.client(transport)
			var polls sync.WaitGroup
			for range 20 {
				polls.Go(func() { fetch(ctx, client, server.URL) })
			}
			polls.Wait()
		}},
		{"idle-connections", false, func(ctx context.Context, p *env) {
			l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
			if err != nil {
				return
			}
			p.goes(func() { <-ctx.Done(); _ = l.Close() })
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}},
	}
}

func fetch(ctx context.Context, c *http.Client, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	if res, err := c.Do(req); err == nil {
		_ = res.Body.Close()
	}
}

// TestPrograms runs all programs for fifteen scaled minutes: each leaking one must fire, and nothing else may, or be proven. On
// a machine that is too busy to take its samples in time they run on until the leaking ones have fired, an hour at most.
func TestPrograms(t *testing.T) {
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	opts, _ := options(t)
	mgr, err := leakguard.NewManager(apiServer(t), opts, leakguard.Options{
		Scale: programScale, Registerer: prometheus.NewRegistry(), Budget: leakguard.Budget{CPU: -1, Pause: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	guard, stop := mgr.Guard(), run(t, mgr)
	eventually(t, "the first sample", func() bool { return guard.Report().Sampling.Taken > 0 })
	programs := slices.Concat(leaking(), leakingAccounted(), benign())
	for _, p := range programs {
		wg.Go(func() { p.run(ctx, &env{name: p.name, wg: &wg, mgr: mgr}) })
	}
	fired := map[string]string{}
	start := time.Now()
	every(ctx, second, func(int) {
		for _, f := range guard.Report().Findings {
			if f.State == leakguard.StateFiring || f.Tier == leakguard.TierProven {
				fired[f.Fingerprint] = f.Controller + " " + f.Culprit.Function + ": " + f.Reason
			}
		}
		if ran := time.Since(start); ran > 60*minute || ran > 15*minute && allFired(programs, fired) {
			cancel()
		}
	})
	wg.Wait()
	stop()
	checkFired(t, programs, slices.Collect(maps.Values(fired)))
}

// names reports whether a finding names the program, by its controller or its function.
func (p *program) names(finding string) bool {
	function := strings.ReplaceAll(p.name, "-", "")
	return strings.HasPrefix(finding, p.name+" ") || strings.Contains(strings.ToLower(finding), "."+function)
}

// allFired reports whether each leaking program has a finding.
func allFired(programs []program, fired map[string]string) bool {
	return !slices.ContainsFunc(programs, func(p program) bool {
		return p.leaks && !slices.ContainsFunc(slices.Collect(maps.Values(fired)), p.names)
	})
}

// checkFired compares the findings with the programs.
func checkFired(t *testing.T, programs []program, fired []string) {
	t.Helper()
	for _, p := range programs {
		if found := slices.ContainsFunc(fired, p.names); found != p.leaks {
			t.Errorf("program %s: fired %t, want %t; all that fired:\n%s", p.name, found, p.leaks, strings.Join(fired, "\n"))
		}
		fired = slices.DeleteFunc(fired, p.names)
	}
	for _, s := range fired {
		t.Errorf("fired, of no program that leaks: %s", s)
	}
}
