package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func corpus(t *testing.T, names ...string) (paths []string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join("..", "..", "testdata", "corpus", name+".gz")
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func call(t *testing.T, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(args, strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

const flatCSV = "t,num_goroutine\n0,80\n60,81\n120,80\n"

func TestExitStatus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name   string
		args   []string
		stdin  string
		status int
		out    string // in stdout
		err    string // in stderr
	}{
		{"benign", []string{write("flat.csv", flatCSV)}, "", 0, "verdict: benign", ""},
		{"standard input", []string{"-"}, flatCSV, 0, "verdict: benign", ""},
		{"leak", corpus(t, "C31-kamaji-fds.series.json"), "", 1, "verdict: leak", ""},
		{"suspect", corpus(t, "C61-no-evidence.series.json"), "", 1, "too early", ""},
		{"series and heaps", corpus(t, "C04-crt-tls-transport-cache.series.json", "C04-crt-tls-transport-cache.t0.heap.debug1.txt", "C04-crt-tls-transport-cache.t1.heap.debug1.txt"), "", 1, "remoteClient", ""},
		{"time to limit", append([]string{"-limit", "1Gi"}, corpus(t, "C46-kcm-workqueue-processing.series.json")...), "", 1, "limit reached in about", ""},
		{"ignored columns", append([]string{"-ignore", "open_fds,num_goroutine,heap_alloc"}, corpus(t, "C31-kamaji-fds.series.json")...), "", 0, "verdict: benign", ""},
		{"help", []string{"-h"}, "", 0, "", "usage: replay"},
		{"no file", nil, "", 2, "", "no FILE"},
		{"unknown flag", []string{"-x"}, "", 2, "", "-x"},
		{"unknown output", []string{"-o", "xml", "f"}, "", 2, "", `-o "xml"`},
		{"bad limit", []string{"-limit", "lots", "f"}, "", 2, "", `-limit "lots"`},
		{"flag behind a file", []string{"f", "-o", "json"}, "", 2, "", `"-o" behind a FILE`},
		{"negative duration", []string{"-every", "-5m", "f"}, "", 2, "", "-every -5m0s"},
		{"no number", []string{"-min-rise", "NaN", "f"}, "", 2, "", "-min-rise NaN"},
		{"no probability", []string{"-max-p", "2", "f"}, "", 2, "", "-max-p 2"},
		{"no rows", []string{"-"}, "t,a\n", 2, "", "no rows"},
		{"bad JSON", []string{"-"}, "{\"columns\": [\"t\"],\n \"rows\": [[0],]}", 2, "", "line 2, column 15"},
		{"thresholds", append([]string{"-min-rise", "1e6", "-min-rise-bytes", "1e12", "-max-p", "0.01", "-warm-up", "-1s", "-every", "10m", "-gap", "2h"}, corpus(t, "C31-kamaji-fds.series.json")...), "", 0, "verdict: benign", ""},
		{"columns as load and work", append([]string{"-load", "reconciles_total", "-work", "heap_alloc", "-count", "num_goroutine"}, corpus(t, "C31-kamaji-fds.series.json")...), "", 0, "explained by reconciles_total", ""},
		{"unknown column", []string{"-load", "pods", write("a.csv", flatCSV)}, "", 2, "", `no column is named "pods"`},
		{"missing file", []string{filepath.Join(dir, "none")}, "", 2, "", "none"},
		{"bad cell", []string{"-"}, "t,a\n0,x\n", 2, "", "line 2, column 3: a"},
		{"bad heap", []string{"-"}, "heap profile: 1: 2 [3: 4] @ heap/2\nx\n", 2, "", "line 2"},
		{"cut gzip", []string{"-"}, "\x1f\x8b\x08\x00", 2, "", "gzip"},
		{"garbage", []string{"-"}, "\x00\x01\x02", 2, "", "binary profile"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, out, errs := call(t, tt.stdin, tt.args...)
			if status != tt.status || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.err) {
				t.Errorf("status %d, want %d\nstdout: %s\nwant in it: %s\nstderr: %s\nwant in it: %s", status, tt.status, out, tt.out, errs, tt.err)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	status, out, _ := call(t, "", append([]string{"-o", "json", "-limit", "4Gi"}, corpus(t, "C45-karpenter-metric-labels.series.json",
		"C45-karpenter-metric-labels.t0.heap.debug1.txt", "C45-karpenter-metric-labels.t1.heap.debug1.txt")...)...)
	var got struct {
		Verdict string `json:"verdict"`
		Series  []struct {
			Name    string  `json:"name"`
			Shape   string  `json:"shape"`
			PerHour float64 `json:"per_hour"`
			Since   *string `json:"since"`
			Reason  string  `json:"reason"`
		} `json:"series"`
		Findings []struct {
			Schema      int    `json:"schema"`
			Fingerprint string `json:"fingerprint"`
			Verdict     string `json:"verdict"`
			Category    string `json:"category"`
			Culprit     struct {
				Function string `json:"function"`
			} `json:"culprit"`
			Reason string `json:"reason"`
		} `json:"findings"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if status != exitFindings || got.Verdict != "leak" || len(got.Series) != 9 {
		t.Errorf("status %d, verdict %q, %d series", status, got.Verdict, len(got.Series))
	}
	registry := false
	for _, s := range got.Series {
		if s.Shape == "" || s.Reason == "" {
			t.Errorf("%+v", s)
		}
		registry = registry || s.Name == "registry_series" && s.Shape == "growing" && s.PerHour > 900 && s.PerHour < 1000 && s.Since != nil
	}
	if !registry {
		t.Errorf("registry_series is not growing by 960 an hour: %+v", got.Series)
	}
	culprit := false
	for _, f := range got.Findings {
		if f.Schema != 1 || len(f.Fingerprint) != 16 || f.Verdict == "" || f.Reason == "" {
			t.Errorf("%+v", f)
		}
		culprit = culprit || f.Culprit.Function == "github.com/aws/karpenter-core/pkg/controllers/metrics/pod.(*Controller).Reconcile"
	}
	if !culprit {
		t.Errorf("no finding names the reconciler: %+v", got.Findings)
	}
	checkKeys(t, out)
	if _, out, _ := call(t, flatCSV, "-o", "json", "-"); !strings.Contains(out, `"findings": []`) || !strings.Contains(out, `"since": null`) {
		t.Errorf("findings are not an empty list: %s", out)
	}
}

// checkKeys wants exactly the keys that the package comment promises.
func checkKeys(t *testing.T, out string) {
	t.Helper()
	var raw map[string]any
	if err := json.Unmarshal([]byte(out), &raw); err != nil {
		t.Fatal(err)
	}
	keys := func(v any) []string { return slices.Sorted(maps.Keys(v.(map[string]any))) }
	first := func(name string) any { return raw[name].([]any)[0] }
	for _, tt := range []struct {
		got  []string
		want string
	}{
		{keys(raw), "findings series time_to_limit verdict"},
		{keys(first("series")), "name per_hour reason shape since"},
		{keys(first("findings")), "advice category count culprit fingerprint first_seen last_seen per_hour reason rule schema severity verdict"},
	} {
		if got := strings.Join(tt.got, " "); got != tt.want {
			t.Errorf("keys %q, want %q", got, tt.want)
		}
	}
}

// TestHeapsInAnyOrder gives the profiles of one process in the wrong order: their MemStats say which is older.
func TestHeapsInAnyOrder(t *testing.T) {
	t.Parallel()
	status, out, _ := call(t, "", corpus(t, "C45-karpenter-metric-labels.t1.heap.debug1.txt", "C45-karpenter-metric-labels.t0.heap.debug1.txt")...)
	if status != exitFindings || !strings.Contains(out, "verdict: leak") {
		t.Errorf("status %d, want 1 and a leak: %s", status, out)
	}
}

func TestSVGIsWellFormed(t *testing.T) {
	t.Parallel()
	_, out, _ := call(t, "", append([]string{"-o", "svg"}, corpus(t, "C66-kcm-pending-notifications.series.json", "C31-kamaji-fds.series.json")...)...)
	decoder := xml.NewDecoder(strings.NewReader(out))
	paths := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "path" {
			paths++
		}
	}
	if paths != 10 || strings.Contains(out, "NaN") || strings.Contains(out, "Inf") {
		t.Errorf("%d lines drawn, want 10", paths)
	}
}
