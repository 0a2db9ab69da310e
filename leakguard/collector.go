package leakguard

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leakguard/leakguard/stackmatch"
)

// maxInfo bounds the findings that the info metric names by their culprit.
const maxInfo = 50

// description is one metric of the collector.
type description struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gauge(name, help string, labels ...string) description {
	return description{prometheus.NewDesc("leakguard_"+name, help, labels, nil), prometheus.GaugeValue}
}

func counter(name, help string, labels ...string) description {
	return description{prometheus.NewDesc("leakguard_"+name, help, labels, nil), prometheus.CounterValue}
}

// descriptions is all metrics of the collector. The names are frozen: dashboards and alerts use them.
type descriptions struct {
	findings, units, growth, info                                     description
	orphans, orphansDropped, inFlight, reconciles, instrumented       description
	samples, skipped, seconds, bytes, errors, panics, interval, stamp description
	probePanics, probeLate, breaker, resource, resourceDropped        description
}

func newDescriptions() descriptions {
	return descriptions{
		findings:        gauge("findings", "Findings by controller, category, severity, tier and state.", "controller", "category", "severity", "tier", "state"),
		units:           gauge("leaked", "Leaked goroutines, bytes or other units of the findings that are pending or firing.", "controller", "category", "state"),
		growth:          gauge("leaked_per_hour", "How fast the findings that are pending or firing grow, in units an hour.", "controller", "category", "state"),
		info:            gauge("finding_info", "The culprits of the 50 largest findings that are pending or firing; always 1.", "fingerprint", "controller", "category", "rule", "tier", "state", "function", "position"),
		orphans:         gauge("orphaned_goroutines", "Goroutines alive after the reconcile that started them has ended, leaked or not.", "controller"),
		orphansDropped:  counter("orphaned_goroutines_dropped_total", "Orphaned goroutines that found no room in the bounded table."),
		inFlight:        gauge("reconciles_in_flight", "Reconciles, or requests and other work of a scope, that have begun and not ended.", "controller"),
		reconciles:      counter("reconciles_total", "Reconciles, or requests and other work of a scope, that have begun.", "controller"),
		instrumented:    gauge("controller_instrumented", "1 for a controller or another scope whose work carries labels, 0 for one that could not be wrapped.", "controller"),
		samples:         counter("samples_total", "Samples taken, by sampling level.", "level"),
		skipped:         counter("samples_skipped_total", "Samples that the budget forbade, by sampling level.", "level"),
		seconds:         counter("sample_seconds_total", "Time spent sampling, by sampling level.", "level"),
		bytes:           counter("sample_bytes_total", "Bytes read by sampling, by sampling level.", "level"),
		errors:          counter("sample_errors_total", "Samples that failed or could be read in part only."),
		panics:          counter("panics_total", "Panics of the guard itself that were recovered."),
		interval:        gauge("interval_seconds", "The sampling interval now in force."),
		stamp:           gauge("last_sample_timestamp_seconds", "When the last sample was taken, in seconds since 1970."),
		probePanics:     counter("probe_panics_total", "Panics of a probe; the first one switches it off.", "probe"),
		breaker:         gauge("breaker_open", "1 while a controller is paused for leaking beyond its allowance, 0.5 while it is on trial, else 0.", "controller"),
		probeLate:       counter("probe_late_total", "Reads that a probe was left out of for taking too long.", "probe"),
		resource:        gauge("resource", "What the probes count: watches, response bodies, informers, files and so on, leaked or not.", "probe", "resource", "controller"),
		resourceDropped: gauge("resources_dropped", "Counts of probes that found no room in the bounded list, or were no number."),
	}
}

func (d *descriptions) all() []description {
	return []description{
		d.findings, d.units, d.growth, d.info, d.orphans, d.orphansDropped, d.inFlight, d.reconciles, d.instrumented, d.samples,
		d.skipped, d.seconds, d.bytes, d.errors, d.panics, d.interval, d.stamp, d.probePanics, d.probeLate, d.breaker, d.resource, d.resourceDropped,
	}
}

// collector turns the last report into metrics.
type collector struct{ guard *Guard }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	d := newDescriptions()
	for _, x := range d.all() {
		ch <- x.desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	d, r := newDescriptions(), c.guard.Report()
	put := func(x description, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(x.desc, x.kind, v, labels...) //nolint:promlinter // it reads literals only; TestMetricNames lints the names
	}
	d.putFindings(put, r.Findings)
	for _, x := range r.Controllers {
		put(d.orphans, float64(x.Orphans), x.Name)
		put(d.instrumented, oneIf(x.Instrumented), x.Name)
		put(d.breaker, breakerValues[x.Breaker], x.Name)
		if x.Instrumented {
			put(d.inFlight, float64(x.InFlight), x.Name)
			put(d.reconciles, float64(x.Reconciles), x.Name)
		}
	}
	for _, x := range r.Sampling.Levels {
		put(d.samples, float64(x.Taken), x.Level)
		put(d.skipped, float64(x.Skipped), x.Level)
		put(d.seconds, x.Seconds, x.Level)
		put(d.bytes, float64(x.Bytes), x.Level)
	}
	for _, x := range r.Probes {
		put(d.probePanics, float64(x.Panics), x.Probe)
		put(d.probeLate, float64(x.Late), x.Probe)
	}
	d.putReadings(put, r.Readings)
	put(d.resourceDropped, float64(r.ReadingsDropped))
	put(d.orphansDropped, float64(r.OrphansDropped))
	put(d.errors, float64(r.Sampling.Errors))
	put(d.panics, float64(r.Sampling.Panics))
	put(d.interval, r.Sampling.IntervalSeconds)
	if !r.At.IsZero() {
		put(d.stamp, float64(r.At.UnixMilli())/1000)
	}
}

// putFindings sums the findings over their bounded labels and names the largest.
func (d *descriptions) putFindings(put func(x description, v float64, labels ...string), findings []Finding) {
	type key struct {
		controller, category string
		severity             stackmatch.Severity
		tier                 Tier
		state                State
	}
	type sumKey struct {
		controller, category string
		state                State
	}
	counts, units, growth := map[key]int{}, map[sumKey]int64{}, map[sumKey]float64{}
	named := 0
	for i := range findings {
		f := &findings[i]
		counts[key{f.Controller, f.Category, f.Severity, f.Tier, f.State}]++
		if f.State != StateFiring && f.State != StatePending {
			continue
		}
		units[sumKey{f.Controller, f.Category, f.State}] += f.Count
		growth[sumKey{f.Controller, f.Category, f.State}] += f.PerHour
		if named++; named <= maxInfo {
			put(d.info, 1, f.Fingerprint, f.Controller, f.Category, f.Rule, string(f.Tier), string(f.State), f.Culprit.Function, f.Culprit.Position())
		}
	}
	for k, n := range counts {
		put(d.findings, float64(n), k.controller, k.category, string(k.severity), string(k.tier), string(k.state))
	}
	for k, n := range units {
		put(d.units, float64(n), k.controller, k.category, string(k.state))
		put(d.growth, growth[k], k.controller, k.category, string(k.state))
	}
}

// breakerValues are the values of the breaker's metric.
var breakerValues = map[string]float64{breakerOpen: 1, breakerTrial: 0.5}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
