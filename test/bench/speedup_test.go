package bench_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/DataDog/gostackparse"

	"github.com/leakguard/leakguard/stackmatch"
)

// BenchmarkSpeedup reads the same dump with both readers in turn and reports how many times faster ours was in its best
// round than the other in its best. Taking turns makes that hold on a machine that others use too.
func BenchmarkSpeedup(b *testing.B) {
	for _, n := range []int{100, 1000, 2000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			data := dump(n)
			best := map[string]time.Duration{}
			round := func(name string, f func() int) {
				start := time.Now()
				got := f()
				took := time.Since(start)
				if got != n {
					b.Fatalf("%s: %d goroutines, want %d", name, got, n)
				}
				if before, ok := best[name]; !ok || took < before {
					best[name] = took
				}
			}
			ours := func(o stackmatch.ReadOptions) func() int {
				return func() int {
					d, err := stackmatch.Read(bytes.NewReader(data), o)
					if err != nil {
						b.Fatal(err)
					}
					return d.Total
				}
			}
			for b.Loop() {
				round("goroutines", ours(stackmatch.ReadOptions{}))
				round("groups", ours(stackmatch.ReadOptions{GroupsOnly: true}))
				round("gostackparse", func() int {
					goroutines, _ := gostackparse.Parse(bytes.NewReader(data))
					return len(goroutines)
				})
			}
			peer := best["gostackparse"].Seconds()
			b.ReportMetric(peer/best["goroutines"].Seconds(), "times-faster")
			b.ReportMetric(peer/best["groups"].Seconds(), "times-faster-groups")
			b.ReportMetric(float64(len(data))/1e6/best["goroutines"].Seconds(), "best-MB/s")
		})
	}
}
