package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is what a run of the command leaves.
type outcome struct {
	status         int
	stdout, stderr string
}

// start runs the command in this process.
func start(t *testing.T, stdin io.Reader, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := environment{
		stdin: stdin, stdout: &stdout, stderr: &stderr, piped: stdin != nil,
		getenv: func(string) string { return "" },
	}
	status := run(t.Context(), args, &env)
	return outcome{status: status, stdout: stdout.String(), stderr: stderr.String()}
}

// stuck writes n goroutines that are stuck in a send.
func stuck(n int) string {
	var b strings.Builder
	b.WriteString("goroutine 1 [select, 9 minutes]:\nmain.main()\n\t/workspace/main.go:5 +0x1\n\n")
	for i := range n {
		fmt.Fprintf(&b, "goroutine %d [chan send, 9 minutes]:\nexample.com/op/q.(*Q).push(0x1)\n\t/workspace/q/q.go:17 +0x1d\n"+
			"created by example.com/op/q.(*Q).start in goroutine 3\n\t/workspace/q/q.go:11 +0x9f\n\n", 10+i)
	}
	return b.String()
}

// file writes a file into a folder of the test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitStatus(t *testing.T) {
	leak, clean := file(t, "leak.txt", stuck(5)), file(t, "clean.txt", stuck(0))
	tests := []struct {
		name  string
		stdin string
		args  []string
		want  int
		out   string // must be in the output
	}{
		{"leak", "", []string{leak}, 1, "LEAK chan-send-abandoned"},
		{"clean", "", []string{clean}, 0, "benign: 1 goroutine in one dump"},
		{"piped", stuck(5), nil, 1, "LEAK"},
		{"standard input by name", stuck(5), []string{"-"}, 1, "LEAK"},
		{"two dumps", "", []string{clean, leak}, 1, "the last of 2 dumps"},
		{"two dumps in one input", stuck(2) + stuck(0) + stuck(7), nil, 1, "7 goroutines"},
		{"markdown", "", []string{"-o", "markdown", leak}, 1, "### leak: chan-send-abandoned (GOR-505)"},
		{"flags behind the file", "", []string{leak, "-o", "markdown"}, 1, "### leak"},
		{"rule switched off", "", []string{"-off", "GOR-505", leak}, 0, "benign"},
		{"main module", "", []string{"-main", "example.com/op", leak}, 1, "q/q.go:17"},
		{"diff", "", []string{"diff", clean, leak}, 1, "new        0 -> 5"},
		{"diff of equal dumps", "", []string{"diff", clean, clean}, 0, "none"},
		{"diff as markdown", "", []string{"diff", "-o", "markdown", clean, leak}, 1, "| new | 0 -> 5 |"},
		{"rules", "", []string{"rules"}, 0, "GOR-101"},
		{"rules as markdown", "", []string{"rules", "-o", "markdown"}, 0, "| GOR-101 |"},
		{"rules as JSON", "", []string{"rules", "-o", "json"}, 0, `"id": "GOR-101"`},
		{"rule explained", "", []string{"rules", "--explain", "gor-101"}, 0, "Predicate lock-semaphore-cycle"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdin io.Reader
			if tt.stdin != "" {
				stdin = strings.NewReader(tt.stdin)
			}
			got := start(t, stdin, tt.args...)
			if got.status != tt.want {
				t.Errorf("status: got %d, want %d\n%s%s", got.status, tt.want, got.stdout, got.stderr)
			}
			if !strings.Contains(got.stdout, tt.out) {
				t.Errorf("output: got\n%s\nwant it to have %q", got.stdout, tt.out)
			}
			if got.stderr != "" {
				t.Errorf("standard error: got %q, want nothing", got.stderr)
			}
		})
	}
}

func TestTrouble(t *testing.T) {
	dump := file(t, "dump.txt", stuck(5))
	tests := []struct {
		name  string
		stdin string
		args  []string
		want  string
	}{
		{"empty file", "", []string{file(t, "empty", "")}, "the input is empty"},
		{"white space", "", []string{file(t, "white", " \n\t\n")}, "the input is empty"},
		{"binary", "", []string{file(t, "binary", "\x7fELF\x02\x01\x01\x00\x00\x00"+strings.Repeat("\x00\xff\x13", 500))}, "binary"},
		{"text without a dump", "", []string{file(t, "text", "hello\nworld\n")}, "no goroutine dump"},
		{"directory", "", []string{t.TempDir()}, "is a directory"},
		{"missing file", "", []string{"/nowhere/at/all"}, "no such file"},
		{"one of two is bad", "", []string{dump, file(t, "empty2", "")}, "the input is empty"},
		{"standard input twice", "x", []string{"-", "-"}, "named twice"},
		{"unknown flag", "", []string{"-nonsense", dump}, "nonsense"},
		{"unknown output", "", []string{"-o", "xml", dump}, `"xml" is none of text, json, markdown`},
		{"unknown colour", "", []string{"-color", "blue", dump}, `"blue"`},
		{"unknown rule off", "", []string{"-off", "GOR-1", dump}, "GOR-1"},
		{"objects without a number", "", []string{"-objects", "many", dump}, "no number of objects"},
		{"objects for two dumps", "", []string{"-objects", "1,2", dump}, "one number for each dump"},
		{"nothing named", "", nil, "usage: stackmatch"},
		{"diff of one", "", []string{"diff", dump}, "usage: stackmatch diff"},
		{"watch without a URL", "", []string{"watch"}, "usage: stackmatch watch"},
		{"watch of a file", "", []string{"watch", dump}, "needs a URL"},
		{"watch too often", "", []string{"watch", "-every", "0s", "http://localhost:1"}, "-every"},
		{"rules with a file", "", []string{"rules", dump}, "usage: stackmatch rules"},
		{"unknown rule", "", []string{"rules", "-explain", "GOR-1"}, "no built-in rule"},
		{"URL without a host", "", []string{"http://"}, "no host"},
		{"nobody listens", "", []string{"http://127.0.0.1:1"}, "refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdin io.Reader
			if tt.stdin != "" {
				stdin = strings.NewReader(tt.stdin)
			}
			got := start(t, stdin, tt.args...)
			if got.status != 2 {
				t.Errorf("status: got %d, want 2", got.status)
			}
			if !strings.Contains(got.stderr, tt.want) {
				t.Errorf("standard error: got %q, want it to have %q", got.stderr, tt.want)
			}
			if got.stdout != "" {
				t.Errorf("output: got %q, want nothing", got.stdout)
			}
			if !strings.Contains(tt.want, "usage") && !strings.Contains(got.stderr, "usage") && strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("standard error: got %q, want one line", got.stderr)
			}
		})
	}
}

func TestRuleFile(t *testing.T) {
	leak := file(t, "leak.txt", stuck(5))
	tests := []struct {
		name, rules string
		want        int
		out         string
	}{
		{"rule of the file", `schema: 1
rules:
  - id: APP-1
    title: pushers are stuck
    severity: critical
    categories: [queue]
    doc: Push waits for a consumer that has gone.
    advice: Select on the context.
    verdict: leak
    match:
      frames: [{exact: example.com/op/q.(*Q).push}]
    when: group.count > 3
`, 1, "LEAK queue  5 goroutines, APP-1, critical"},
		{"rule switched off", "schema: 1\ndisabled: [GOR-505]\n", 0, "benign"},
		{"suppressed", `schema: 1
suppressions:
  - rule: GOR-505
    owner: team
    reason: known
    expires: 2999-01-01
`, 0, "1 finding suppressed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := start(t, nil, "-rules", file(t, "rules.yaml", tt.rules), leak)
			if got.status != tt.want || !strings.Contains(got.stdout, tt.out) {
				t.Errorf("got status %d\n%s%s\nwant %d with %q", got.status, got.stdout, got.stderr, tt.want, tt.out)
			}
		})
	}
	bad := start(t, nil, "-rules", file(t, "bad.yaml", "schema: 1\nrules: [{id: A}]\n"), leak)
	if bad.status != 2 || !strings.Contains(bad.stderr, "bad.yaml") || bad.stdout != "" {
		t.Errorf("bad rule file: got status %d, %q, want 2 and its name", bad.status, bad.stderr)
	}
}

func TestJSON(t *testing.T) {
	got := start(t, strings.NewReader(stuck(5)), "-o", "json")
	var out map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"verdict", "goroutines", "findings", "errors"} {
		if _, ok := out[key]; !ok {
			t.Errorf("no %q in %s", key, got.stdout)
		}
	}
	if len(out) != 4 {
		t.Errorf("keys: got %v, want four", out)
	}
	findings, ok := out["findings"].([]any)
	if !ok || len(findings) != 1 {
		t.Fatalf("findings: got %v, want one", out["findings"])
	}
	finding, ok := findings[0].(map[string]any)
	if !ok {
		t.Fatalf("finding: got %v, want an object", findings[0])
	}
	for _, key := range []string{
		"schema", "fingerprint", "rule", "category", "verdict", "severity", "count", "per_hour", "wait_reason", "culprit", "reason", "advice", "trap", "stacks",
	} {
		if _, ok := finding[key]; !ok {
			t.Errorf("no %q in the finding", key)
		}
	}
	for _, key := range []string{"tier", "state", "first_seen", "controller"} {
		if _, ok := finding[key]; ok {
			t.Errorf("%q is in the finding of a dump without it", key)
		}
	}
	clean := start(t, strings.NewReader(stuck(0)), "-o", "json")
	if !strings.Contains(clean.stdout, `"findings": []`) || !strings.Contains(clean.stdout, `"errors": []`) {
		t.Errorf("got %s, want empty lists", clean.stdout)
	}
}

func TestJSONErrors(t *testing.T) {
	cut := strings.TrimSuffix(stuck(3), "in goroutine 3\n\t/workspace/q/q.go:11 +0x9f\n\n") + "goroutine x [oops"
	got := start(t, strings.NewReader(cut), "-o", "json")
	var out struct {
		Goroutines int
		Errors     []struct {
			Line    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil {
		t.Fatal(err)
	}
	if out.Goroutines < 3 {
		t.Errorf("goroutines: got %d, want those before the end", out.Goroutines)
	}
	if len(out.Errors) == 0 || out.Errors[0].Line == 0 || out.Errors[0].Message == "" {
		t.Errorf("errors: got %+v, want one with a line", out.Errors)
	}
}

func TestColour(t *testing.T) {
	tests := []struct {
		name     string
		terminal bool
		env      map[string]string
		args     []string
		want     bool
	}{
		{"terminal", true, nil, nil, true},
		{"pipe", false, nil, nil, false},
		{"NO_COLOR", true, map[string]string{"NO_COLOR": "1"}, nil, false},
		{"dumb terminal", true, map[string]string{"TERM": "dumb"}, nil, false},
		{"never", true, nil, []string{"-color", "never"}, false},
		{"always", false, map[string]string{"NO_COLOR": "1"}, []string{"-color", "always"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout bytes.Buffer
			env := environment{
				stdin: strings.NewReader(stuck(5)), stdout: &stdout, stderr: io.Discard, piped: true, terminal: tt.terminal,
				getenv: func(key string) string { return tt.env[key] },
			}
			run(t.Context(), tt.args, &env)
			if got := strings.Contains(stdout.String(), "\x1b["); got != tt.want {
				t.Errorf("colour: got %v, want %v", got, tt.want)
			}
		})
	}
}

// noise is an endless line-broken text without a dump.
type noise struct{ left int }

func (n *noise) Read(b []byte) (int, error) {
	if n.left <= 0 {
		return 0, io.EOF
	}
	const line = "2026-01-01T00:00:00Z INFO nothing of interest goroutine 7 [maybe\n"
	c := 0
	for c+len(line) <= len(b) {
		c += copy(b[c:], line)
	}
	if c == 0 {
		c = copy(b, line)
	}
	n.left -= c
	return c, nil
}

// TestNoise reads a quarter of a gigabyte of nothing: one clear error, bounded memory, and progress.
func TestNoise(t *testing.T) {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	got := start(t, &noise{left: 256 << 20})
	metrics.Read(sample)
	if allocated := sample[0].Value.Uint64() - before; allocated > 16<<20 {
		t.Errorf("allocated %d bytes in all, want at most 16 MiB", allocated)
	}
	if got.status != 2 || !strings.Contains(got.stderr, "no goroutine dump found") {
		t.Errorf("got status %d, %q, want one clear error", got.status, got.stderr)
	}
	if !strings.Contains(got.stderr, "standard input: 64 MiB read") || strings.Count(got.stderr, "MiB read") != 4 {
		t.Errorf("progress: got %q, want a line for each 64 MiB", got.stderr)
	}
	if quiet := start(t, &noise{left: 65 << 20}, "-q"); strings.Contains(quiet.stderr, "MiB read") {
		t.Errorf("with -q: got %q, want no progress", quiet.stderr)
	}
}

func TestURL(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/hang"):
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		case strings.HasPrefix(r.URL.Path, "/halfway"):
			_, _ = io.WriteString(w, stuck(1))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case r.URL.Path == "/debug/pprof/goroutine" && r.URL.RawQuery == "debug=2":
			_, _ = io.WriteString(w, stuck(4))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	defer close(hang)
	for _, name := range []string{"", "/", "/debug", "/debug/pprof", "/debug/pprof/", "/debug/pprof/goroutine", "/debug/pprof/goroutine?debug=2"} {
		if got := start(t, nil, server.URL+name); got.status != 1 || !strings.Contains(got.stdout, "4 goroutines, GOR-505") {
			t.Errorf("%q: got status %d, %s%s, want the dump", name, got.status, got.stdout, got.stderr)
		}
	}
	if got := start(t, nil, server.URL+"/elsewhere"); got.status != 2 || !strings.Contains(got.stderr, "404") {
		t.Errorf("not found: got status %d, %q", got.status, got.stderr)
	}
	for _, name := range []string{"/hang", "/halfway"} {
		got := start(t, nil, "-timeout", "50ms", server.URL+name)
		if got.status != 2 || !strings.Contains(got.stderr, "Timeout") && !strings.Contains(got.stderr, "deadline") {
			t.Errorf("%s: got status %d, %q, want a timeout", name, got.status, got.stderr)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestWatch(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(calls.Add(1))
		if n == 2 {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(stuck(10*n), "chan send, 9 minutes", "chan receive, 30 minutes"))
	}))
	defer server.Close()
	got := start(t, nil, "watch", server.URL, "--every", "20ms", "--for", "1s")
	if got.status != 1 || !strings.Contains(got.stdout, "GOR-001") || !strings.Contains(got.stdout, "changes between the dumps") {
		t.Errorf("got status %d\n%s%s\nwant growth", got.status, got.stdout, got.stderr)
	}
	if !strings.Contains(got.stderr, "503") || strings.Count(got.stderr, "goroutines\n") < 3 {
		t.Errorf("progress: got %q, want the failure and a line for each dump", got.stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	env := environment{stdout: io.Discard, stderr: &stderr, getenv: func(string) string { return "" }}
	if status := run(ctx, []string{"watch", server.URL}, &env); status != 2 {
		t.Errorf("interrupted before the first dump: got status %d, want 2", status)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestWatchThins(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, stuck(3)) }))
	defer server.Close()
	w := watcher{in: input{env: &environment{stderr: io.Discard}, s: &settings{quiet: true}}, url: server.URL}
	for range 3 * maxKept {
		if err := w.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(w.dumps) > maxKept || len(w.dumps) != len(w.times) {
			t.Fatalf("kept %d dumps and %d times, want at most %d of both", len(w.dumps), len(w.times), maxKept)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
