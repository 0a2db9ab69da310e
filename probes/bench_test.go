package probes_test

import (
	"context"
	"runtime/pprof"
	"strconv"
	"testing"

	"github.com/leakguard/leakguard/probes"
)

// BenchmarkScope is what one reconcile pays, beside pprof.Do with as many labels.
func BenchmarkScope(b *testing.B) {
	b.Run("pprof.Do", func(b *testing.B) {
		b.ReportAllocs()
		ctx, n := b.Context(), uint64(1<<40)
		for b.Loop() {
			n++
			pprof.Do(ctx, pprof.Labels(probes.LabelController, "app", probes.LabelReconcile, strconv.FormatUint(n, 36)), func(context.Context) {})
		}
	})
	b.Run("exact", func(b *testing.B) {
		b.ReportAllocs()
		ctx, scope := b.Context(), probes.NewScopes().Scope("app")
		for b.Loop() {
			_, span := scope.Begin(ctx, scope.Object("ns", "name"))
			span.End()
		}
	})
	b.Run("low cardinality", func(b *testing.B) {
		b.ReportAllocs()
		scopes := probes.NewScopes()
		scopes.SetLowCardinality(true)
		ctx, scope := b.Context(), scopes.Scope("app")
		for b.Loop() {
			_, span := scope.Begin(ctx, scope.Object("ns", "name"))
			span.End()
		}
	})
}
