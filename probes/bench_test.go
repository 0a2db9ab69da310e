package probes_test

import (
	"context"
	"io"
	"net/http"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/probes"
)

// BenchmarkScope is what one reconcile pays, beside [pprof.Do] with as many labels.
func BenchmarkScope(b *testing.B) {
	b.Run("pprof.Do", func(b *testing.B) {
		b.ReportAllocs()
		ctx, n := b.Context(), uint64(1<<40)
		done := reportCPU(b)
		for b.Loop() {
			n++
			pprof.Do(ctx, pprof.Labels(probes.LabelController, "app", probes.LabelReconcile, strconv.FormatUint(n, 36)), func(context.Context) {})
		}
		done()
	})
	b.Run("exact", func(b *testing.B) {
		b.ReportAllocs()
		ctx, scope := b.Context(), probes.NewScopes().Scope("app")
		done := reportCPU(b)
		for b.Loop() {
			_, span := scope.Begin(ctx, scope.Object("ns", "name"))
			span.End()
		}
		done()
	})
	b.Run("low cardinality", func(b *testing.B) {
		b.ReportAllocs()
		scopes := probes.NewScopes()
		scopes.SetLowCardinality(true)
		ctx, scope := b.Context(), scopes.Scope("app")
		done := reportCPU(b)
		for b.Loop() {
			_, span := scope.Begin(ctx, scope.Object("ns", "name"))
			span.End()
		}
		done()
	})
}

// BenchmarkShared is what one call of an event handler pays for its scope.
func BenchmarkShared(b *testing.B) {
	b.ReportAllocs()
	scope := probes.NewScopes().Scope("handlers")
	done := reportCPU(b)
	for b.Loop() {
		scope.BeginShared().End()
	}
	done()
}

// BenchmarkTransport is what one HTTP round trip pays over the bare one; the base does nothing.
func BenchmarkTransport(b *testing.B) {
	base := roundTripFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{Body: io.NopCloser(strings.NewReader("x"))}, nil
	})
	scopes := probes.NewScopes()
	transport := probes.NewTransport(probes.LedgerOptions{Scopes: scopes})
	ctx, span := scopes.Scope("app").Begin(b.Context(), 1)
	defer span.End()
	for _, tt := range []struct {
		name string
		rt   http.RoundTripper
	}{{"bare", base}, {"tracked", transport.Wrap(base)}, {"shielded", probes.Shield(base)}, {"both", probes.Shield(transport.Wrap(base))}} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://host/api/v1/namespaces/ns/pods/a", nil)
			if err != nil {
				b.Fatal(err)
			}
			done := reportCPU(b)
			for b.Loop() {
				resp, err := tt.rt.RoundTrip(r)
				if err != nil {
					b.Fatal(err)
				}
				_ = resp.Body.Close()
			}
			done()
		})
	}
}
