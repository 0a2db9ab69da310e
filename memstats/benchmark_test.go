package memstats_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/leakguard/leakguard/memstats"
)

// BenchmarkRead compares a reading with its peers: compare as ratios, in one run.
func BenchmarkRead(b *testing.B) {
	b.Run("reader=Read", func(b *testing.B) {
		reader := memstats.NewReader(memstats.Options{})
		var s memstats.Sample
		b.ReportAllocs()
		for b.Loop() {
			reader.Read(&s)
		}
	})
	b.Run("reader=ReadProcess", func(b *testing.B) {
		reader := memstats.NewReader(memstats.Options{})
		var s memstats.Sample
		b.ReportAllocs()
		for b.Loop() {
			reader.ReadProcess(&s)
		}
	})
	b.Run("reader=runtime.ReadMemStats", func(b *testing.B) {
		var m runtime.MemStats
		b.ReportAllocs()
		for b.Loop() {
			runtime.ReadMemStats(&m)
		}
	})
	b.Run("reader=client_golang", func(b *testing.B) {
		collector := collectors.NewGoCollector()
		metrics := make(chan prometheus.Metric, 1000)
		b.ReportAllocs()
		for b.Loop() {
			collector.Collect(metrics)
			for len(metrics) > 0 {
				<-metrics
			}
		}
	})
}

func BenchmarkSeriesAdd(b *testing.B) {
	for name, layout := range map[string]*memstats.Layout{"compact": memstats.Compact(), "full": memstats.Full()} {
		b.Run("layout="+name, func(b *testing.B) {
			s := memstats.NewSeries(layout)
			at := epoch
			b.ReportAllocs()
			for b.Loop() {
				at = at.Add(10 * time.Second)
				s.Add(at, float64(at.Second()))
			}
			b.ReportMetric(float64(s.Bytes()), "bytes/series")
		})
	}
}

func BenchmarkJudge(b *testing.B) {
	day := 30 * time.Hour
	for _, bench := range []struct {
		name string
		f    func(m float64) float64
	}{
		{"flat", func(float64) float64 { return 40 }},
		{"noisy", func(m float64) float64 { return 40 + float64(int(m*7919)%13) }},
		{"growing", func(m float64) float64 { return 40 + m }},
	} {
		b.Run("series="+bench.name, func(b *testing.B) {
			s := feed(memstats.Compact(), day, bench.f)
			j := memstats.NewJudge(memstats.Thresholds{})
			b.ReportAllocs()
			for b.Loop() {
				j.Judge(s)
			}
		})
	}
}

func BenchmarkFitTrend(b *testing.B) {
	for _, n := range []int{24, 128, 512} {
		all := make([]memstats.Point, n)
		for i := range all {
			all[i] = memstats.Point{Time: epoch.Add(time.Duration(i) * time.Minute), Value: float64(i*7919%1000) + float64(i)}
		}
		b.Run(fmt.Sprintf("points=%d", n), func(b *testing.B) {
			for b.Loop() {
				memstats.FitTrend(all)
			}
		})
	}
}

func BenchmarkReadHeap(b *testing.B) {
	data := readGzip(b, glob(b, "C45*.t1.heap.debug1.txt.gz")[0])
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := memstats.ReadHeap(data); err != nil {
			b.Fatal(err)
		}
	}
}
