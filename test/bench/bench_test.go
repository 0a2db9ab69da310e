package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/DataDog/gostackparse"
	"github.com/maruel/panicparse/v2/stack"

	"github.com/leakguard/leakguard/stackmatch"
)

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{100, 1000, 2000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			data := dump(n)
			b.Run("reader=stackmatch", func(b *testing.B) { benchStackmatch(b, data, n, stackmatch.ReadOptions{}) })
			b.Run("reader=stackmatch-groups", func(b *testing.B) { benchStackmatch(b, data, n, stackmatch.ReadOptions{GroupsOnly: true}) })
			b.Run("reader=gostackparse", func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					if goroutines, errs := gostackparse.Parse(bytes.NewReader(data)); len(goroutines) != n || len(errs) > 0 {
						b.Fatalf("%d goroutines, errors %v", len(goroutines), errs)
					}
				}
			})
			if n > 10_000 {
				return // takes minutes
			}
			b.Run("reader=panicparse", func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					s, _, err := stack.ScanSnapshot(bytes.NewReader(data), io.Discard, &stack.Opts{})
					if s == nil || len(s.Goroutines) != n {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func benchStackmatch(b *testing.B, data []byte, n int, o stackmatch.ReadOptions) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := stackmatch.Read(bytes.NewReader(data), o)
		if err != nil || d.Total != n {
			b.Fatalf("%d goroutines, error %v", d.Total, err)
		}
	}
}
