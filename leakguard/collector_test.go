package leakguard //nolint:testpackage // see page_test.go

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func cmpSorted() cmp.Option {
	return cmp.Transformer("sorted", func(s []string) []string { return slices.Sorted(slices.Values(s)) })
}

// TestMetricNames freezes the names and labels of the metrics: dashboards and alerts use them.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	want := []string{
		"leakguard_breaker_open {controller}",
		"leakguard_controller_instrumented {controller}", "leakguard_finding_info {fingerprint,controller,category,rule,tier,state,function,position}",
		"leakguard_findings {controller,category,severity,tier,state}", "leakguard_interval_seconds {}", "leakguard_last_sample_timestamp_seconds {}",
		"leakguard_leaked {controller,category,state}", "leakguard_leaked_per_hour {controller,category,state}",
		"leakguard_orphaned_goroutines {controller}", "leakguard_orphaned_goroutines_dropped_total {}", "leakguard_panics_total {}",
		"leakguard_probe_late_total {probe}", "leakguard_probe_panics_total {probe}", "leakguard_reconciles_in_flight {controller}",
		"leakguard_reconciles_total {controller}", "leakguard_resource {probe,resource,controller}", "leakguard_resources_dropped {}", "leakguard_sample_bytes_total {level}", "leakguard_sample_errors_total {}",
		"leakguard_sample_seconds_total {level}", "leakguard_samples_skipped_total {level}", "leakguard_samples_total {level}",
	}
	ch := make(chan *prometheus.Desc, 64)
	New(Options{}).Collector().Describe(ch)
	close(ch)
	var got []string
	for d := range ch {
		s := d.String()
		name := between(s, `fqName: "`, `"`)
		got = append(got, name+" {"+between(s, "variableLabels: {", "}")+"}")
	}
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
}

func between(s, start, end string) string {
	_, s, _ = strings.Cut(s, start)
	s, _, _ = strings.Cut(s, end)
	return s
}

func TestInfoMetricIsBounded(t *testing.T) {
	t.Parallel()
	g := guardWithReport(Options{})
	r := *g.Report()
	one := r.Findings[0]
	r.Findings = nil
	for i := range 2 * maxInfo {
		f := one
		f.Fingerprint = fmt.Sprintf("%016x", i)
		r.Findings = append(r.Findings, f)
	}
	g.report.Store(&r)
	registry := prometheus.NewRegistry()
	if err := registry.Register(g.Collector()); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		n := len(f.GetMetric())
		if f.GetName() == "leakguard_finding_info" && n != maxInfo {
			t.Errorf("got %d info series, want %d", n, maxInfo)
		}
		if f.GetName() == "leakguard_findings" && (n != 1 || f.GetMetric()[0].GetGauge().GetValue() != 2*maxInfo) {
			t.Errorf("got %v, want one series of %d", f.GetMetric(), 2*maxInfo)
		}
	}
}
