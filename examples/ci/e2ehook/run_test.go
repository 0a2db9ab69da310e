package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/leakguard/leaktest"
	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// operator is a page whose report a test sets.
type operator struct {
	*httptest.Server

	mu      sync.Mutex
	report  leakguard.Report
	stale   bool // no further samples
	down    bool
	headers []string
	// leakAfter is after how many answers a leak is in the report; 0 means never.
	leakAfter int
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	o := &operator{report: leakguard.Report{Schema: leakguard.FindingSchema, Started: time.Now().Add(-time.Hour), Goroutines: 40}}
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(o.Close)
	return o
}

func (o *operator) serve(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.headers = append(o.headers, r.Header.Get("Authorization"))
	switch {
	case o.down:
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	case strings.HasPrefix(r.URL.Path, "/debug/pprof/"):
		_, _ = w.Write([]byte(r.URL.Path + "?" + r.URL.RawQuery))
	default:
		if !o.stale || o.report.At.IsZero() {
			o.report.At = time.Now()
		}
		_ = json.NewEncoder(w).Encode(&o.report)
		if o.leakAfter > 0 && len(o.headers) >= o.leakAfter {
			o.report.Findings = []leakguard.Finding{finding("leak", leakguard.StateFiring, 12)}
		}
	}
}

// change sets the report.
func (o *operator) change(f func(r *leakguard.Report)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(&o.report)
}

func finding(name string, state leakguard.State, count int64) leakguard.Finding {
	return leakguard.Finding{
		Schema: leakguard.FindingSchema, Fingerprint: "00" + name, Rule: "orphaned", Category: "goroutine-orphaned", Tier: leakguard.TierLikely, State: state,
		Verdict: stackmatch.VerdictLeak, Severity: stackmatch.SeverityCritical, Controller: "app", Count: count, Reason: "reason of " + name, Advice: "advice",
		Culprit: frame.Frame{Function: "example.com/app." + name, File: "/src/app/reconciler.go", Line: 88},
	}
}

// command is one run of the hook.
type command struct {
	t        *testing.T
	operator *operator
	dir      string
	env      map[string]string
	extra    []string
}

func (c *command) run(name string, args ...string) (code int, out string) {
	c.t.Helper()
	var stdout, stderr bytes.Buffer
	all := append([]string{
		name, "-url", c.operator.URL + "/debug/leakguard", "-memory", filepath.Join(c.dir, "memory.json"),
		"-answer", "2s", "-wait", "600ms", "-junit", filepath.Join(c.dir, "leak.xml"), "-artifacts", filepath.Join(c.dir, "kept"),
		"-pprof", c.operator.URL + "/debug/pprof",
	}, append(args, c.extra...)...)
	code = run(c.t.Context(), all, func(key string) string { return c.env[key] }, &stdout, &stderr)
	return code, stdout.String() + stderr.String()
}

func (c *command) suite() testSuite {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, "leak.xml"))
	if err != nil {
		c.t.Fatal(err)
	}
	var s testSuite
	if err := xml.Unmarshal(data, &s); err != nil {
		c.t.Fatal(err)
	}
	return s
}

const suppressPoll = `suppressions:
- function: example.com/app.poll
  owner: team-a
  reason: goes with v2
  until: "2999-12-31"
`

func TestClasses(t *testing.T) {
	tests := []struct {
		name     string
		before   []leakguard.Finding
		after    []leakguard.Finding
		suppress string
		args     []string
		code     int
		says     []string
		failures int
		skipped  int
	}{
		{name: "clean", code: exitClean, says: []string{"clean: the suite left nothing new"}},
		{name: "leak", after: []leakguard.Finding{finding("leak", leakguard.StateFiring, 12)}, code: exitLeak, says: []string{"leak: controller=app count=12", "reason of leak", "::error file=app/reconciler.go,line=88"}, failures: 1},
		{name: "was there", before: []leakguard.Finding{finding("leak", leakguard.StateFiring, 12)}, after: []leakguard.Finding{finding("leak", leakguard.StateFiring, 12)}, code: exitClean},
		{name: "has grown", before: []leakguard.Finding{finding("leak", leakguard.StateFiring, 12)}, after: []leakguard.Finding{finding("leak", leakguard.StateFiring, 30)}, code: exitLeak, says: []string{"count=30", "12 before the suite"}, failures: 1},
		{name: "known", after: []leakguard.Finding{finding("poll", leakguard.StateFiring, 5)}, suppress: suppressPoll, code: exitKnown, says: []string{"known: controller=app", "owner team-a", "::notice "}, skipped: 1},
		{name: "known and a leak", after: []leakguard.Finding{finding("poll", leakguard.StateFiring, 5), finding("leak", leakguard.StateFiring, 5)}, suppress: suppressPoll, code: exitLeak, failures: 1, skipped: 1},
		{name: "expired", after: []leakguard.Finding{finding("poll", leakguard.StateFiring, 5)}, suppress: strings.ReplaceAll(suppressPoll, "2999", "2001"), code: exitLeak, says: []string{"expired on 2001-12-31, owner team-a"}, failures: 1},
		{name: "unused suppression", suppress: suppressPoll, code: exitClean, says: []string{"the suppression of example.com/app.poll, owner team-a, fits nothing any more"}},
		{name: "pending", after: []leakguard.Finding{finding("leak", leakguard.StatePending, 4)}, code: exitClean, says: []string{"not decided: controller=app"}, skipped: 1},
		{name: "pending counts", after: []leakguard.Finding{finding("leak", leakguard.StatePending, 4)}, args: []string{"-state", "pending"}, code: exitLeak, failures: 1},
		{name: "listed and resolved", after: []leakguard.Finding{finding("a", leakguard.StateListed, 4), finding("b", leakguard.StateResolved, 4)}, code: exitClean},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &command{t: t, operator: newOperator(t), dir: t.TempDir(), env: map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": "/src"}}
			if tt.suppress != "" {
				file := filepath.Join(c.dir, "suppressions.yaml")
				if err := os.WriteFile(file, []byte(tt.suppress), 0o600); err != nil {
					t.Fatal(err)
				}
				tt.args = append(tt.args, "-suppressions", file)
			}
			c.operator.change(func(r *leakguard.Report) { r.Findings = tt.before })
			if code, out := c.run("before"); code != exitClean {
				t.Fatalf("before ends with %d:\n%s", code, out)
			}
			c.operator.change(func(r *leakguard.Report) { r.Findings = tt.after })
			code, out := c.run("after", tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d:\n%s", code, tt.code, out)
			}
			for _, s := range tt.says {
				if !strings.Contains(out, s) {
					t.Errorf("the output does not say %q:\n%s", s, out)
				}
			}
			suite := c.suite()
			if suite.Failures != tt.failures || suite.Skipped != tt.skipped || suite.Tests != len(suite.Cases) || suite.Tests == 0 {
				t.Errorf("JUnit has %d tests, %d failures, %d skipped; want %d failures, %d skipped", suite.Tests, suite.Failures, suite.Skipped, tt.failures, tt.skipped)
			}
			checkKept(t, c, tt.code == exitLeak)
		})
	}
}

// checkKept checks the artefacts: of a leak all, else none.
func checkKept(t *testing.T, c *command, leak bool) {
	t.Helper()
	var got []string
	entries, _ := os.ReadDir(filepath.Join(c.dir, "kept")) // none: no folder
	for _, e := range entries {
		got = append(got, e.Name())
	}
	var want []string
	if leak {
		want = []string{"goroutines.pb.gz", "goroutines.txt", "heap.pb.gz", "leakguard.json"}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("artefacts (-want +got):\n%s", diff)
	}
}

func TestUnstable(t *testing.T) {
	tests := []struct {
		name   string
		change func(o *operator)
		says   string
	}{
		{"down", func(o *operator) { o.down = true }, "no answer in time"},
		{"stale", func(o *operator) { o.stale = true }, "no answer in time"},
		{"restarted", func(o *operator) { o.report.Started = time.Now() }, "restarted during the suite"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &command{t: t, operator: newOperator(t), dir: t.TempDir(), env: map[string]string{"GITHUB_ACTIONS": "true"}}
			if code, out := c.run("before"); code != exitClean {
				t.Fatalf("before ends with %d:\n%s", code, out)
			}
			c.operator.mu.Lock()
			tt.change(c.operator)
			c.operator.mu.Unlock()
			code, out := c.run("after")
			if code != exitUnstable || !strings.Contains(out, "unstable: ") || !strings.Contains(out, tt.says) || !strings.Contains(out, "::warning title=leak check unstable") {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, exitUnstable, tt.says, out)
			}
			if s := c.suite(); s.Failures != 0 || s.Skipped != 1 {
				t.Errorf("JUnit has %d failures and %d skipped, want 0 and 1", s.Failures, s.Skipped)
			}
		})
	}
}

func TestUnstableBefore(t *testing.T) {
	c := &command{t: t, operator: newOperator(t), dir: t.TempDir()}
	c.operator.down = true
	if code, out := c.run("before"); code != exitUnstable {
		t.Errorf("before ends with %d, want %d:\n%s", code, exitUnstable, out)
	}
	c.operator.change(func(*leakguard.Report) { c.operator.down = false })
	if code, out := c.run("after"); code != exitUnstable || !strings.Contains(out, "before the suite") {
		t.Errorf("after ends with %d, want %d:\n%s", code, exitUnstable, out)
	}
}

// TestMake runs the Makefile's end-to-end target: a leak fails it, a known leak and no answer do not.
func TestMake(t *testing.T) {
	dir := t.TempDir()
	hook := filepath.Join(dir, "e2ehook")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", hook, ".").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	for _, tt := range []struct {
		name, says, suppress string
		fails                bool
	}{
		{name: "clean", says: "clean"},
		{name: "leak", says: "leak: controller=app", fails: true},
		{name: "known", says: "known leaks only", suppress: strings.ReplaceAll(suppressPoll, "poll", "leak")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOperator(t)
			suite := filepath.Join(t.TempDir(), "suite.sh")                                   // the suite makes the operator leak by asking it
			if err := os.WriteFile(suite, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil { //nolint:gosec // a script
				t.Fatal(err)
			}
			if tt.says != "clean" {
				o.change(func(*leakguard.Report) { o.leakAfter = 1 })
			}
			suppressions := filepath.Join(t.TempDir(), "suppressions.yaml")
			if err := os.WriteFile(suppressions, []byte(tt.suppress), 0o600); err != nil {
				t.Fatal(err)
			}
			makefile, err := filepath.Abs("../Makefile")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "make", "-f", makefile, "test-leak-e2e", "HOOK="+hook, "E2E="+suite,
				"URL="+o.URL+"/debug/leakguard", "OUT="+t.TempDir(), "SUPPRESS="+suppressions)
			out, err := cmd.CombinedOutput()
			if (err != nil) != tt.fails || !strings.Contains(string(out), tt.says) {
				t.Errorf("make ends with %v, want a failure: %v, and %q:\n%s", err, tt.fails, tt.says, out)
			}
		})
	}
}

// TestPendingIsDecided has a finding fire while after waits for it.
func TestPendingIsDecided(t *testing.T) {
	c := &command{t: t, operator: newOperator(t), dir: t.TempDir(), extra: []string{"-wait", "20s"}}
	if code, out := c.run("before"); code != exitClean {
		t.Fatalf("before ends with %d:\n%s", code, out)
	}
	c.operator.change(func(r *leakguard.Report) {
		r.Findings = []leakguard.Finding{finding("leak", leakguard.StatePending, 4)}
	})
	timer := time.AfterFunc(700*time.Millisecond, func() {
		c.operator.change(func(r *leakguard.Report) { r.Findings[0].State = leakguard.StateFiring })
	})
	defer timer.Stop()
	if code, out := c.run("after"); code != exitLeak {
		t.Errorf("exit code %d, want %d:\n%s", code, exitLeak, out)
	}
}

func TestMisuse(t *testing.T) {
	c := &command{t: t, operator: newOperator(t), dir: t.TempDir()}
	if code, out := c.run("after"); code != exitMisuse || !strings.Contains(out, "the report of before") {
		t.Errorf("after without before: exit code %d\n%s", code, out)
	}
	if code, out := c.run("before"); code != exitClean {
		t.Fatalf("before ends with %d:\n%s", code, out)
	}
	write := func(name, text string) string {
		file := filepath.Join(c.dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, args := range map[string][]string{
		"unknown flag":        {"-nonsense"},
		"argument":            {"extra"},
		"state":               {"-state", "resolved"},
		"no file":             {"-suppressions", filepath.Join(c.dir, "none.yaml")},
		"unknown field":       {"-suppressions", write("a.yaml", strings.ReplaceAll(suppressPoll, "owner", "oner"))},
		"no owner":            {"-suppressions", write("b.yaml", strings.ReplaceAll(suppressPoll, "team-a", `""`))},
		"no date":             {"-suppressions", write("c.yaml", strings.ReplaceAll(suppressPoll, "2999-12-31", "soon"))},
		"fits everything":     {"-suppressions", write("d.yaml", strings.ReplaceAll(suppressPoll, "example.com/app.poll", `""`))},
		"certificate":         {"-ca-file", write("ca.pem", "none")},
		"missing certificate": {"-ca-file", filepath.Join(c.dir, "none.pem")},
	} {
		code, out := c.run("after", args...)
		if want := exitMisuse; code != want {
			t.Errorf("%s: exit code %d, want %d\n%s", name, code, want, out)
		}
		if out == "" {
			t.Errorf("%s: nothing is said", name)
		}
	}
	if code := run(t.Context(), nil, os.Getenv, &bytes.Buffer{}, &bytes.Buffer{}); code != exitMisuse {
		t.Errorf("no arguments: exit code %d, want %d", code, exitMisuse)
	}
}

func TestToken(t *testing.T) {
	c := &command{t: t, operator: newOperator(t), dir: t.TempDir()}
	file := filepath.Join(c.dir, "token")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := c.run("before", "-token-file", file); code != exitClean {
		t.Fatalf("before ends with %d:\n%s", code, out)
	}
	if got := c.operator.headers[0]; got != "Bearer secret" {
		t.Errorf("the request has the authorization %q, want the token", got)
	}
}

// TestKit reads the files of the kit.
func TestKit(t *testing.T) {
	if _, err := readSuppressions("../suppressions.yaml"); err != nil {
		t.Errorf("the example of a suppression file: %v", err)
	}
	data, err := os.ReadFile("../workflows/leaks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []map[string]any `json:"steps"`
		} `json:"jobs"`
	}
	if err = yaml.Unmarshal(data, &workflow); err != nil {
		t.Fatal(err)
	}
	if len(workflow.Jobs["unit"].Steps) == 0 || len(workflow.Jobs["e2e"].Steps) == 0 {
		t.Errorf("the workflow has the jobs %v, want unit and e2e with steps", workflow.Jobs)
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"test-leak:", "test-leak-e2e:"} {
		if !strings.Contains(string(makefile), target) || !strings.Contains(string(data), strings.TrimSuffix(target, ":")) {
			t.Errorf("the Makefile or the workflow lacks %s", target)
		}
	}
}

func TestEscape(t *testing.T) {
	var b bytes.Buffer
	annotator(func(key string) string { return map[string]string{"GITHUB_ACTIONS": "true"}[key] }, &b)("error", annotation{title: "a:b,c%", text: "x\ny%"})
	if got, want := b.String(), "::error title=a%3Ab%2Cc%25::x%0Ay%25\n"; got != want {
		t.Errorf("annotation %q, want %q", got, want)
	}
}
