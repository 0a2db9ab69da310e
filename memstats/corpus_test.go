package memstats_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/memstats"
)

// corpusCase is what the sidecar of a case says.
type corpusCase struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Verdict string `json:"verdict"`
	Culprit string `json:"culprit_function"`
}

func readCase(t *testing.T, stem string) (c corpusCase) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "corpus", stem+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func readGzip(tb testing.TB, path string) []byte {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() {
		if err = f.Close(); err != nil {
			tb.Error(err)
		}
	}()
	r, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func glob(tb testing.TB, pattern string) []string {
	tb.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "corpus", pattern))
	if err != nil || len(all) == 0 {
		tb.Fatalf("no %s: %v", pattern, err)
	}
	return all
}

func TestCorpusSeries(t *testing.T) {
	for _, path := range glob(t, "*.series.json.gz") {
		stem := strings.TrimSuffix(filepath.Base(path), ".series.json.gz")
		want := readCase(t, stem)
		table, err := memstats.ReadTable(readGzip(t, path))
		if err != nil {
			t.Fatal(err)
		}
		got := memstats.Replay(table, memstats.ReplayOptions{})
		t.Logf("%-34s want %-8s got %-8s", stem, want.Verdict, got.Verdict)
		for _, s := range got.Series {
			t.Logf("    %-44s %-10s %-8s %s", s.Name, s.Shape, s.Outcome, s.Reason)
		}
		if got.Verdict.String() != want.Verdict {
			t.Errorf("%s: %v, want %s", stem, got.Verdict, want.Verdict)
		}
	}
}

// TestCorpusHeap judges each case's heap profiles: pairs together, variants (named by a Go version) one by one.
func TestCorpusHeap(t *testing.T) {
	for _, tt := range []struct {
		stem    string
		files   []string
		want    memstats.Outcome
		culprit string
		hint    string
	}{
		{"C04-crt-tls-transport-cache", []string{"t0", "t1"}, memstats.Leak, "example.com/fleet-operator/internal/controller.(*MemberReconciler).remoteClient", "transport.(*tlsTransportCache).get"},
		{"C45-karpenter-metric-labels", []string{"t0", "t1"}, memstats.Leak, "github.com/aws/karpenter-core/pkg/controllers/metrics/pod.(*Controller).Reconcile", "prometheus.MakeLabelPairs"},
		{"C46-kcm-workqueue-processing", []string{"t0", "t1"}, memstats.Leak, "k8s.io/kubernetes/pkg/controller/node/scheduler.(*NoExecuteTaintManager).Run.func1", "workqueue.set.insert"},
		{"C48-helm-openapi-per-reconcile", []string{"t1"}, memstats.Leak, "github.com/operator-framework/helm-operator-plugins/pkg/client.(*actionClientGetter).ActionClientFor", "openapiv2.NewDocument"},
		{"C60-time-after", []string{"go120"}, memstats.Suspect, "github.com/hellofresh/health-go/v5.(*Health).Measure.func1", "time.NewTimer"},
		{"C60-time-after", []string{"go126"}, memstats.Benign, "", ""},
		{"C60-time-after", []string{"go120", "go126"}, memstats.Benign, "", ""},
		{"C66-kcm-pending-notifications", []string{"t1"}, memstats.Suspect, "k8s.io/utils/buffer.(*RingGrowing).WriteOne", "RingGrowing"},
	} {
		name := tt.stem + " " + strings.Join(tt.files, "+")
		var profiles []*memstats.Heap
		for _, part := range tt.files {
			h, err := memstats.ReadHeap(readGzip(t, filepath.Join("testdata", "corpus", tt.stem+"."+part+".heap.debug1.txt.gz")))
			if err != nil {
				t.Fatal(err)
			}
			profiles = append(profiles, h)
		}
		findings := memstats.JudgeHeap(profiles, memstats.HeapOptions{})
		got := memstats.WorstOutcome(findings)
		t.Logf("%-40s want %-8s got %-8s", name, tt.want, got)
		for _, f := range findings {
			t.Logf("    %-8s %s: %s", f.Verdict, f.Culprit.Function, f.Reason)
		}
		if got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if tt.culprit == "" {
			continue
		}
		if len(findings) == 0 || findings[0].Culprit.Function != tt.culprit || !strings.Contains(findings[0].Reason, tt.hint) {
			t.Errorf("%s: culprit %v, want %s with %s in the reason", name, findings, tt.culprit, tt.hint)
		}
	}
}
