package leakguard_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// benignLibraries are programs whose goroutines belong to libraries.
func benignLibraries() []program {
	return []program{
		{"batcher", false, func(ctx context.Context, p *env) {
			items := make(chan int, 1000)
			p.goes(func() { every(ctx, 10*second, func(int) { drain(items) }) })
			p.reconciles(ctx, 5, func(_ context.Context, object int) { items <- object })
		}},
		{"expiring-tenants", false, func(ctx context.Context, p *env) {
			p.reconciles(ctx, 300, func(_ context.Context, object int) {
				if object%4 == 0 { // a new tenant every four seconds, each worker ends by itself
					p.goes(func() { pause(ctx, 100*second) })
				}
			})
		}},
		{"broadcaster", false, func(ctx context.Context, _ *env) {
			b := record.NewBroadcaster()
			b.StartLogging(func(string, ...any) {})
			r := b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "test"})
			every(ctx, second, func(n int) {
				r.Event(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", n)}}, corev1.EventTypeNormal, "Reason", "message")
			})
			b.Shutdown()
		}},
		{"database", false, func(ctx context.Context, p *env) {
			db := sql.OpenDB(connector{})
			db.SetMaxOpenConns(20)
			p.reconciles(ctx, 5, func(ctx context.Context, _ int) { _ = db.PingContext(ctx) })
			_ = db.Close()
		}},
		{"informer-per-object", false, func(ctx context.Context, p *env) {
			cache, started := p.cache(), map[int]bool{}
			p.reconciles(ctx, 10, func(_ context.Context, object int) {
				if started[object] {
					return
				}
				started[object] = true
				p.informs(ctx, cache)
			})
		}},
		{"cron", false, func(ctx context.Context, p *env) {
			every(ctx, 30*second, func(int) { p.goes(func() { pause(ctx, 10*second) }) })
		}},
	}
}

func drain(items chan int) {
	for {
		select {
		case <-items:
		default:
			return
		}
	}
}

// idleServer has nothing and says nothing.
func idleServer() toolscache.ListerWatcher {
	return &toolscache.ListWatch{
		ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return &corev1.PodList{}, nil },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
}

// connector connects to a database that is not there.
type connector struct{}

func (connector) Connect(context.Context) (driver.Conn, error) { return conn{}, nil }
func (connector) Driver() driver.Driver                        { return nil }

// conn is a connection that does nothing.
type conn struct{}

var errNothing = errors.New("nothing there")

func (conn) Prepare(string) (driver.Stmt, error) { return nil, errNothing }
func (conn) Close() error                        { return nil }
func (conn) Begin() (driver.Tx, error)           { return nil, errNothing }
