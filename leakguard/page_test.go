package leakguard //nolint:testpackage // it puts a report in place that takes minutes to come about

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

func guardWithReport(o Options) *Guard {
	o.Registerer = prometheus.NewRegistry()
	g := New(o)
	culprit := frame.Frame{Function: "example.com/secret.Leak", File: "/src/secret/leak.go", Line: 7}
	g.report.Store(&Report{
		Schema: FindingSchema, At: time.Unix(1_700_000_000, 0), Goroutines: 40, Notices: []string{"notice of secret"},
		Controllers: []ControllerReport{{Name: "secret", Instrumented: true}},
		Readings:    []Reading{{Probe: "http", Resource: "secrets left open", Controller: "secret", Count: 4, Culprit: &culprit}},
		Findings: []Finding{{
			Schema: FindingSchema, Fingerprint: "0123456789abcdef", Rule: ruleOrphan, Category: "goroutine-orphaned", Tier: TierLikely,
			State: StateFiring, Verdict: stackmatch.VerdictLeak, Severity: stackmatch.SeverityWarning, Controller: "secret", Count: 40,
			Culprit: culprit, Reason: "reason of secret", Stacks: [][]frame.Frame{{culprit}},
		}},
	})
	return g
}

func TestStrangersGetCountsOnly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, remote, forwarded string
		options                 Options
		names                   bool
	}{
		{"loopback", "127.0.0.1:1234", "", Options{}, true},
		{"loopback, IPv6", "[::1]:1234", "", Options{}, true},
		{"stranger", "10.1.2.3:1234", "", Options{}, false},
		{"stranger through a proxy beside us", "127.0.0.1:1234", "10.1.2.3", Options{}, false},
		{"address that is none", "pipe", "", Options{}, false},
		{"stranger, open by option", "10.1.2.3:1234", "", Options{DebugOpen: true}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := guardWithReport(test.options).Handler()
			for _, format := range []string{"json", "text"} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, PagePath+"?format="+format, http.NoBody)
				r.RemoteAddr = test.remote
				if test.forwarded != "" {
					r.Header.Set("X-Forwarded-For", test.forwarded)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if got := strings.Contains(w.Body.String(), "secret"); got != test.names {
					t.Errorf("%s: names shown: got %t, want %t:\n%s", format, got, test.names, w.Body)
				}
				if !strings.Contains(w.Body.String(), "40") {
					t.Errorf("%s: the count is missing:\n%s", format, w.Body)
				}
			}
		})
	}
}

func TestPageFormats(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, method, query, accept, agent string
		status                             int
		contentType                        string
	}{
		{"browser", http.MethodGet, "", "text/html", "Mozilla/5.0", 200, "application/json"},
		{"curl", http.MethodGet, "", "*/*", "curl/8.0", 200, "text/plain; charset=utf-8"},
		{"wget", http.MethodGet, "", "*/*", "Wget/1.21", 200, "text/plain; charset=utf-8"},
		{"curl that wants JSON", http.MethodGet, "", "application/json", "curl/8.0", 200, "application/json"},
		{"query wins", http.MethodGet, "?format=text", "application/json", "", 200, "text/plain; charset=utf-8"},
		{"head", http.MethodHead, "", "", "", 200, "application/json"},
		{"unknown format", http.MethodGet, "?format=yaml", "", "", 400, "text/plain; charset=utf-8"},
		{"post", http.MethodPost, "", "", "", 405, "text/plain; charset=utf-8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), test.method, PagePath+test.query, http.NoBody)
			r.Header.Set("Accept", test.accept)
			r.Header.Set("User-Agent", test.agent)
			w := httptest.NewRecorder()
			guardWithReport(Options{}).Handler().ServeHTTP(w, r)
			if w.Code != test.status || w.Header().Get("Content-Type") != test.contentType {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Header().Get("Content-Type"), test.status, test.contentType)
			}
			if test.method == http.MethodHead && w.Body.Len() > 0 {
				t.Error("HEAD has a body")
			}
		})
	}
}

// TestFindingJSON freezes the names of the fields: people's scripts read them.
func TestFindingJSON(t *testing.T) {
	t.Parallel()
	f := guardWithReport(Options{}).Report().Findings[0]
	f.Advice, f.Trap, f.WaitReason = "a", "S1-02", "select"
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(fields))
	for k := range fields {
		got = append(got, k)
	}
	want := []string{
		"advice", "category", "controller", "count", "culprit", "fingerprint", "first_seen", "last_seen", "per_hour", "reason",
		"rule", "schema", "severity", "stacks", "state", "tier", "trap", "verdict", "wait_reason",
	}
	if d := cmp.Diff(want, got, cmpSorted()); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	g := guardWithReport(Options{})
	if err := g.Check(nil); err != nil {
		t.Errorf("before the start: %v", err)
	}
	g.started.Store(time.Now().Add(-2 * time.Minute).UnixNano())
	if err := g.Check(nil); err == nil {
		t.Error("two minutes without a sample: got no error")
	}
	g.sampled.Store(time.Now().UnixNano())
	if err := g.Check(nil); err != nil {
		t.Errorf("a firing finding must not make a pod unhealthy by default: %v", err)
	}
	strict := guardWithReport(Options{UnreadyOn: TierLikely})
	strict.sampled.Store(time.Now().UnixNano())
	if err := strict.Check(nil); err == nil {
		t.Error("UnreadyOn likely: got no error")
	}
	proven := guardWithReport(Options{UnreadyOn: TierProven})
	proven.sampled.Store(time.Now().UnixNano())
	if err := proven.Check(nil); err != nil {
		t.Errorf("UnreadyOn proven with a likely finding: %v", err)
	}
}
