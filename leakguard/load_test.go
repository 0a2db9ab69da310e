package leakguard //nolint:testpackage // the reader is inside

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestLoadReader(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	depth := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_depth", Help: "Depth."}, []string{"name"})
	waited := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "workqueue_queue_duration_seconds", Help: "Waited."})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "controller_runtime_reconcile_time_seconds", Help: "Took."})
	registry.MustRegister(depth, waited, took)
	l := loadReader{gatherer: registry, every: time.Minute}
	now := time.Unix(1000, 0)
	if got := l.read(now); got.Known {
		t.Errorf("without a queue got %+v, want unknown", got)
	}
	depth.WithLabelValues("a").Set(3)
	depth.WithLabelValues("b").Set(4)
	waited.Observe(2)
	waited.Observe(4)
	took.Observe(1)
	if got := l.read(now.Add(time.Second)); got.Known {
		t.Errorf("a second later got %+v, want what was read before", got)
	}
	want := Load{Known: true, QueueDepth: 7, QueueSeconds: 3, ReconcileSeconds: 1}
	if got := l.read(now.Add(time.Minute)); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	took.Observe(5)
	want.QueueSeconds, want.ReconcileSeconds = 0, 5
	if got := l.read(now.Add(2 * time.Minute)); got != want {
		t.Errorf("of the last minute got %+v, want %+v", got, want)
	}
}
