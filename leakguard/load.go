package leakguard

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/leakguard/leakguard/probes"
)

// loadReader reads what controller-runtime's metrics say of the work before the operator. Gathering a registry costs up to
// milliseconds in a large operator, so it is done now and then.
type loadReader struct {
	gatherer prometheus.Gatherer
	every    time.Duration
	at       time.Time
	last     Load
	waited   mean
	took     mean
	answer   chan []*dto.MetricFamily // of a gathering under way; nil when there is none

	controllers map[string]bool // the names of all that have started in the process
}

// gathererOf gives what to gather from: the registry that the guard registers in, if it can, else controller-runtime's.
func gathererOf(r prometheus.Registerer) prometheus.Gatherer {
	if g, ok := r.(prometheus.Gatherer); ok {
		return g
	}
	return metrics.Registry
}

// mean turns a histogram's running sum and count into the mean of what came since the last look.
type mean struct {
	sum   float64
	count uint64
}

func (m *mean) since(sum float64, count uint64) float64 {
	before := *m
	m.sum, m.count = sum, count
	if count <= before.count {
		return 0
	}
	return (sum - before.sum) / float64(count-before.count)
}

// gather asks for all metrics on a goroutine of its own, for a collector of the operator may block; nil when there is no
// answer in time. Nobody is asked again before the last one has answered.
func (l *loadReader) gather() []*dto.MetricFamily {
	if l.answer == nil {
		answer := make(chan []*dto.MetricFamily, 1) // buffered: a late answer has no reader
		l.answer = answer
		go func() {
			families, _ := l.gatherer.Gather() // what could be gathered is good enough
			answer <- families
		}()
	}
	late := time.NewTimer(probes.DefaultReadTimeout)
	defer late.Stop()
	select {
	case families := <-l.answer:
		l.answer = nil
		return families
	case <-late.C:
		return nil
	}
}

// read gives the load; between two looks the last one.
func (l *loadReader) read(now time.Time) Load {
	if now.Sub(l.at) < l.every {
		return l.last
	}
	l.at = now
	families := l.gather()
	if families == nil {
		return l.last
	}
	var load Load
	var waited, took mean
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "controller_runtime_max_concurrent_reconciles":
				l.noteController(m)
			case "workqueue_depth":
				load.Known = true
				load.QueueDepth += m.GetGauge().GetValue()
			case "workqueue_queue_duration_seconds":
				waited.sum += m.GetHistogram().GetSampleSum()
				waited.count += m.GetHistogram().GetSampleCount()
			case "controller_runtime_reconcile_time_seconds":
				took.sum += m.GetHistogram().GetSampleSum()
				took.count += m.GetHistogram().GetSampleCount()
			}
		}
	}
	load.QueueSeconds, load.ReconcileSeconds = l.waited.since(waited.sum, waited.count), l.took.since(took.sum, took.count)
	l.last = load
	return load
}

// noteController remembers the name of a controller, which controller-runtime labels a metric of each with.
func (l *loadReader) noteController(m *dto.Metric) {
	for _, label := range m.GetLabel() {
		if label.GetName() == "controller" {
			if l.controllers == nil {
				l.controllers = map[string]bool{}
			}
			l.controllers[label.GetValue()] = true
		}
	}
}
