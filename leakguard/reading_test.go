package leakguard //nolint:testpackage // readings that no probe of ours gives

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

func TestReadingsAreOrdered(t *testing.T) {
	t.Parallel()
	leak := frame.Frame{Function: "example.com/a.Leak", File: "/src/a/leak.go", Line: 7}
	got, dropped := reported([]probes.Reading{
		{Probe: "process", Resource: "threads", Count: 9, Covariate: -1},
		{Probe: "http", Resource: "watches", Count: 2, Covariate: 5},
		{Probe: "http", Resource: "watches left open", Scope: "b", Count: 1, Covariate: -1, Bounded: true},
		{Probe: "http", Resource: "watches left open", Scope: "a", Count: 1, Covariate: math.NaN()},
		{Probe: "http", Resource: "watches left open", Scope: "a", Count: 3, Covariate: -1, Leaked: true, Culprit: leak},
		{Probe: "odd", Resource: "no number", Count: math.NaN()},
		{Probe: "odd", Resource: "no number", Count: math.Inf(1)},
	})
	five := 5.0
	want := []Reading{
		{Probe: "http", Resource: "watches", Count: 2, Covariate: &five},
		{Probe: "http", Resource: "watches left open", Controller: "a", Count: 3, Leaked: true, Culprit: &leak},
		{Probe: "http", Resource: "watches left open", Controller: "a", Count: 1},
		{Probe: "http", Resource: "watches left open", Controller: "b", Count: 1, Bounded: true},
		{Probe: "process", Resource: "threads", Count: 9},
	}
	if d := cmp.Diff(want, got); d != "" || dropped != 2 {
		t.Errorf("dropped %d, want 2; readings (-want +got):\n%s", dropped, d)
	}
}

func TestReadingsAreBounded(t *testing.T) {
	t.Parallel()
	list := make([]probes.Reading, 0, 2*maxReported)
	for i := range 2*maxReported - 1 {
		list = append(list, probes.Reading{Probe: "a", Resource: fmt.Sprintf("thing %d", i), Count: 1, Covariate: -1})
	}
	list = append(list, probes.Reading{Probe: "z", Resource: "leak", Count: 1, Covariate: -1, Leaked: true})
	got, dropped := reported(list)
	if len(got) != maxReported || dropped != maxReported {
		t.Errorf("got %d readings and %d dropped, want %d of each", len(got), dropped, maxReported)
	}
	if last := got[len(got)-1]; !last.Leaked {
		t.Errorf("the leak was dropped for a mere count: the last is %+v", last)
	}
}

// TestReadingsNeverFailAScrape has what a probe of the user's own may give: two readings of the same name, bytes that are no
// text, a name without end.
func TestReadingsNeverFailAScrape(t *testing.T) {
	t.Parallel()
	g := New(Options{Registerer: prometheus.NewRegistry()})
	r := *g.Report()
	r.Readings, r.ReadingsDropped = reported([]probes.Reading{
		{Probe: "own", Resource: "things", Scope: "a", Count: 1},
		{Probe: "own", Resource: "things", Scope: "a", Count: 2, Culprit: frame.Frame{Function: "f"}},
		{Probe: "own", Resource: "things", Scope: "b", Count: 4},
		{Probe: "own", Resource: "bad \xff text", Count: 1},
		{Probe: "own", Resource: strings.Repeat("ü", maxLabel), Count: 1},
	})
	g.report.Store(&r)
	registry := prometheus.NewRegistry()
	if err := registry.Register(g.Collector()); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "leakguard_resource" {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got[strings.Join(labels, "|")] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{"a|own|things": 3, "b|own|things": 4, "|own|bad  text": 1, "|own|" + strings.Repeat("ü", maxLabel/2): 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("series (-want +got):\n%s", d)
	}
}
