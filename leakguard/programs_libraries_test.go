package leakguard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// benignLazily are things that a reconcile happens to start and that serve all that come after it.
func benignLazily() []program {
	return []program{
		{"lazy-informer", false, func(ctx context.Context, p *env) {
			var once sync.Once
			cache := p.cache()
			p.reconciles(ctx, 5, func(context.Context, int) {
				once.Do(func() { p.informs(ctx, cache) })
			})
		}},
		{"controllers-one-by-one", false, func(ctx context.Context, p *env) {
			skip := true
			every(ctx, 20*second, func(n int) {
				if n < 15 {
					_, _ = controller.New(fmt.Sprint(p.name, n), p.mgr, controller.Options{
						MaxConcurrentReconciles: 10, SkipNameValidation: &skip,
						Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }),
					})
				}
			})
		}},
		{"lazy-broadcaster", false, func(ctx context.Context, p *env) {
			var b record.EventBroadcaster
			p.reconciles(ctx, 5, func(context.Context, int) {
				if b == nil {
					b = record.NewBroadcaster()
					b.StartLogging(func(string, ...any) {})
				}
				b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: p.name}).Event(&corev1.Pod{}, corev1.EventTypeNormal, "Reason", "message")
			})
			if b != nil {
				b.Shutdown()
			}
		}},
		{"lazy-shards", false, func(ctx context.Context, p *env) {
			shards := map[int]chan int{}
			p.reconciles(ctx, 64, func(_ context.Context, object int) {
				shard, started := shards[object%16]
				if !started {
					shard = make(chan int, 8)
					shards[object%16] = shard
					p.goes(func() { serve(ctx, shard) })
				}
				shard <- object
			})
		}},
		{"lazy-connections", false, func(ctx context.Context, p *env) {
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			defer server.Close()
			transport := &http.Transport{MaxIdleConnsPerHost: 8}
			defer transport.CloseIdleConnections()
			client := p.client(transport)
			p.reconciles(ctx, 5, func(ctx context.Context, object int) {
				var requests sync.WaitGroup // more at once than ever before, now and then
				for range 1 + object {
					requests.Go(func() { fetch(ctx, client, server.URL) })
				}
				requests.Wait()
			})
		}},
		{"tls-http2", false, func(ctx context.Context, p *env) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			client := server.Client()
			p.reconciles(ctx, 5, func(ctx context.Context, object int) {
				fetch(ctx, client, server.URL)
				if object == 4 { // a connection that the server or a proxy ends now and then
					client.CloseIdleConnections()
				}
			})
		}},
	}
}

// serve takes what comes until ctx ends.
func serve(ctx context.Context, items <-chan int) {
	for {
		select {
		case <-items:
		case <-ctx.Done():
			return
		}
	}
}

// benignClients are programs like those that gRPC, leader election and their like make of goroutines.
func benignClients() []program {
	return []program{
		{"grpc-client", false, func(ctx context.Context, p *env) {
			var c *rpcConn
			p.reconciles(ctx, 5, func(ctx2 context.Context, object int) {
				if c == nil || object == 0 && c.calls > 60 { // it goes idle and connects anew
					c.close()
					c = dialRPC(ctx, p)
				}
				c.call(ctx2)
			})
			c.close()
		}},
		{"grpc-streams", false, func(ctx context.Context, p *env) {
			c := dialRPC(ctx, p)
			streams := map[int]context.CancelFunc{}
			p.reconciles(ctx, 20, func(_ context.Context, object int) {
				if stop := streams[object]; stop != nil { // the object has changed: its stream is opened anew
					stop()
				}
				stream, stop := context.WithCancel(ctx)
				streams[object] = stop
				p.goes(func() { c.receive(stream) })
			})
			for _, stop := range streams {
				stop()
			}
			c.close()
		}},
		{"leader-election", false, func(ctx context.Context, p *env) {
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock: &memoryLock{identity: p.name}, LeaseDuration: 30 * second, RenewDeadline: 20 * second, RetryPeriod: 2 * second,
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(ctx context.Context) { <-ctx.Done() }, OnStoppedLeading: func() {}},
			})
			if err == nil {
				elector.Run(ctx)
			}
		}},
		{"klog-flush", false, func(ctx context.Context, _ *env) {
			klog.StartFlushDaemon(second)
			defer klog.StopFlushDaemon()
			<-ctx.Done()
		}},
		{"publisher", false, func(ctx context.Context, p *env) {
			var mu sync.Mutex
			var subscribers []chan int
			every(ctx, second, func(n int) {
				mu.Lock()
				defer mu.Unlock()
				if n < 60 {
					c := make(chan int, 1)
					subscribers = append(subscribers, c)
					p.goes(func() { serve(ctx, c) })
				}
				if n%10 == 0 { // silent in between
					for _, c := range subscribers {
						select {
						case c <- n:
						default:
						}
					}
				}
			})
		}},
		{"exec-with-output", false, func(ctx context.Context, p *env) {
			p.reconciles(ctx, 5, func(ctx context.Context, _ int) {
				var out bytes.Buffer
				c := exec.CommandContext(ctx, "echo", "a line")
				c.Stdout, c.Stderr = &out, &out
				_ = c.Run()
			})
		}},
	}
}

// rpcConn is a connection with the goroutines of gRPC's: one that reads, one that writes, one that keeps it alive, one
// that runs callbacks, and one more for each call that may be cancelled.
type rpcConn struct {
	stop   context.CancelFunc
	writes chan int
	calls  int
	ended  sync.WaitGroup
}

func dialRPC(ctx context.Context, p *env) *rpcConn {
	ctx, stop := context.WithCancel(ctx)
	near, far := net.Pipe()
	c := &rpcConn{stop: stop, writes: make(chan int, 8)}
	for _, f := range []func(){
		func() { _, _ = near.Read(make([]byte, 1)) },
		func() { serve(ctx, c.writes) },
		func() { every(ctx, 10*second, func(int) {}) },
		func() { serve(ctx, make(chan int)) },
		func() { <-ctx.Done(); _ = near.Close(); _ = far.Close() },
	} {
		c.ended.Add(1)
		p.goes(func() { defer c.ended.Done(); f() })
	}
	return c
}

// call is one call, which ends.
func (c *rpcConn) call(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, second)
	defer cancel()
	c.calls++
	c.ended.Go(func() { <-ctx.Done() })
	c.writes <- c.calls
}

// receive is a stream.
func (c *rpcConn) receive(ctx context.Context) { <-ctx.Done() }

// close ends the connection; a nil one is closed.
func (c *rpcConn) close() {
	if c != nil {
		c.stop()
		c.ended.Wait()
	}
}

// memoryLock is a lease that nobody else asks for.
type memoryLock struct {
	identity string
	mu       sync.Mutex
	record   *resourcelock.LeaderElectionRecord
}

var errNoLease = apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "leader")

func (l *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return nil, nil, errNoLease
	}
	return l.record, []byte(fmt.Sprint(*l.record)), nil
}

func (l *memoryLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *memoryLock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.HolderIdentity != l.identity {
		return errors.New("another one")
	}
	l.record = &r
	return nil
}

func (l *memoryLock) RecordEvent(string) {}
func (l *memoryLock) Identity() string   { return l.identity }
func (l *memoryLock) Describe() string   { return "memory" }
