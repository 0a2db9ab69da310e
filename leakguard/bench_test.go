package leakguard //nolint:testpackage // it ticks a sampler without a manager

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/probes"
)

// park starts n goroutines, a part of which carry a span's label each, and ends them with the benchmark.
func park(b *testing.B, n, labelled int) {
	b.Helper()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	scope := process.scopes.Scope("bench")
	for i := range n {
		start := func() {
			wg.Go(func() { <-stop })
		}
		if i >= labelled {
			start()
			continue
		}
		_, span := scope.Begin(context.Background(), probes.Object(i+1)) //nolint:gosec // not negative
		start()
		span.End()
	}
	b.Cleanup(func() { close(stop); wg.Wait() })
}

// BenchmarkTick is one tick of the guard in the steady state beside the bare goroutine profile, in one run: compare the
// two by their ns/op. The cost of the detector is in the first.
//
//	go test ./leakguard -run '^$' -bench Tick
func BenchmarkTick(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for _, labelled := range []int{0, n / 100} {
			b.Run(fmt.Sprintf("goroutines=%d/labelled=%d", n, labelled), func(b *testing.B) {
				park(b, n, labelled)
				b.Run("tick", func(b *testing.B) {
					g := New(Options{Registerer: prometheus.NewRegistry()})
					set, err := probes.NewSet(0)
					if err != nil {
						b.Fatal(err)
					}
					s := newSampler(g, set)
					s.begun = time.Now()
					for range 3 {
						s.tick(context.Background())
					}
					b.ReportAllocs()
					for b.Loop() {
						s.tick(context.Background())
					}
				})
				b.Run("bare", func(b *testing.B) {
					var buf bytes.Buffer
					b.ReportAllocs()
					for b.Loop() {
						buf.Reset()
						if err := pprof.Lookup("goroutine").WriteTo(&buf, 0); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
		}
	}
}

// BenchmarkReconciler is one reconcile that does nothing, bare and wrapped, under a live guard: subtract the first from
// the others. Of many short runs the fastest says most on a busy machine:
//
//	go test ./leakguard -run '^$' -bench Reconciler -benchtime 5000x -count 200
func BenchmarkReconciler(b *testing.B) {
	process.guard.Store(New(Options{Registerer: prometheus.NewRegistry()}))
	b.Cleanup(func() { process.guard.Store(nil); process.scopes.SetLowCardinality(false) })
	bare := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}}
	for _, tt := range []struct {
		name string
		r    reconcile.Reconciler
		low  bool
	}{{"bare", bare, false}, {"exact", Reconciler("bench", bare), false}, {"low cardinality", Reconciler("bench", bare), true}} {
		b.Run(tt.name, func(b *testing.B) {
			process.scopes.SetLowCardinality(tt.low)
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tt.r.Reconcile(ctx, request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
