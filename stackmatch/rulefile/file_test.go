package rulefile_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

var update = flag.Bool("update", false, "write the golden files")

// full reads the example that uses every field.
func full(tb testing.TB) *rulefile.File {
	tb.Helper()
	f, err := rulefile.Load("testdata/full.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func TestLoad(t *testing.T) {
	f := full(t)
	if got, want := f.Rules(), []string{"APP-001", "APP-002", "GOR-505"}; !cmp.Equal(got, want) {
		t.Errorf("Rules() = %v, want %v", got, want)
	}
	if got, want := f.Overrides(), []string{"GOR-505"}; !cmp.Equal(got, want) {
		t.Errorf("Overrides() = %v, want %v", got, want)
	}
	if f.Version != "2026-11-30.1" || f.Owner != "team-operators" || len(f.SHA256) != 64 {
		t.Errorf("got version %q, owner %q, hash %q", f.Version, f.Owner, f.SHA256)
	}
	set, err := f.RuleSet(rulefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := set.Len(), len(stackmatch.Builtin())+2-1; got != want {
		t.Errorf("the set has %d rules, want %d", got, want)
	}
	got, ok := set.Rule("APP-001")
	if !ok {
		t.Fatal("APP-001 is missing")
	}
	want := stackmatch.Rule{
		ID: "APP-001", Title: "upload workers pile up", Severity: "warning", Categories: []string{"upload"},
		Doc:     "Workers of the uploader wait for a reply that nobody sends. A burst of uploads ends within minutes.",
		Sources: []string{"example.com/app/issues/12"}, Advice: "Give the reply channel room for one.",
		Verdict: "suspect", Growing: "leak",
		Match: stackmatch.Match{
			Frames:      []stackmatch.Pattern{stackmatch.Prefix("example.com/app/upload.(*Worker).")},
			WaitReasons: []string{"chan receive"}, Labels: map[string]string{"tenant": ""}, MinCount: 3,
		},
	}
	if diff := cmp.Diff(got, want, cmpopts.IgnoreFields(stackmatch.Match{}, "When")); diff != "" {
		t.Errorf("APP-001 (-got +want):\n%s", diff)
	}
	if got.Match.When == nil {
		t.Error("APP-001 has no condition")
	}
	if set.Rules()[0].ID != "APP-001" || set.Rules()[1].ID != "APP-002" {
		t.Error("the file's own rules do not come first")
	}
}

// TestOverride checks that a rule with the id of a built-in one changes only what it says, and that one can be switched off.
func TestOverride(t *testing.T) {
	set, err := full(t).RuleSet(rulefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := set.Rule("GOR-506"); ok {
		t.Error("GOR-506 is still there")
	}
	got, _ := set.Rule("GOR-505")
	want := builtin(t, "GOR-505")
	want.Severity, want.Match.MinWait = stackmatch.SeverityCritical, 15*time.Minute
	if diff := cmp.Diff(got, want, cmpopts.IgnoreFields(stackmatch.Match{}, "When")); diff != "" {
		t.Errorf("GOR-505 (-got +want):\n%s", diff)
	}
	if index(set.Rules(), "GOR-505") < index(set.Rules(), "GOR-501") {
		t.Error("the overridden rule has left its place")
	}
}

// TestOverrideWhole checks that lists, patterns and the predicate of a built-in rule are replaced, not added to.
func TestOverrideWhole(t *testing.T) {
	set := parse(t, `schema: 1
rules:
  - id: GOR-503
    categories: [mine]
    match: {frames: [{exact: example.com/app.poll}], predicate: "", leaf: {exact: example.com/app.poll}}
`)
	got, _ := set.Rule("GOR-503")
	want := builtin(t, "GOR-503")
	want.Categories = []string{"mine"}
	want.Match = stackmatch.Match{
		Frames: []stackmatch.Pattern{stackmatch.Exact("example.com/app.poll")}, Leaf: stackmatch.Exact("example.com/app.poll"),
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("GOR-503 (-got +want):\n%s", diff)
	}
}

func TestWithoutBuiltin(t *testing.T) {
	f, err := rulefile.Load("testdata/only.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := f.RuleSet(rulefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Len(); got != 1 {
		t.Errorf("the set has %d rules, want 1", got)
	}
}

func TestLoadErrors(t *testing.T) {
	folder := t.TempDir()
	large := filepath.Join(folder, "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("#", rulefile.MaxBytes+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rulefile.Load(filepath.Join(folder, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: got %v, want os.ErrNotExist", err)
	}
	for name, want := range map[string]string{folder: "is no regular file", large: "is larger than 1048576 bytes"} {
		_, err := rulefile.Load(name)
		if !errors.Is(err, rulefile.ErrInvalid) || err.Error() != "rulefile: "+name+": "+want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// parse gives the rule set of a file.
func parse(tb testing.TB, text string) *stackmatch.RuleSet {
	tb.Helper()
	return parseWith(tb, text, rulefile.Options{})
}

func parseWith(tb testing.TB, text string, o rulefile.Options) *stackmatch.RuleSet {
	tb.Helper()
	f, err := rulefile.Parse("rules.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	set, err := f.RuleSet(o)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func builtin(t *testing.T, id string) stackmatch.Rule {
	t.Helper()
	for _, r := range stackmatch.Builtin() {
		if r.ID == id {
			return r
		}
	}
	t.Fatalf("no rule %s", id)
	return stackmatch.Rule{}
}

func index(rules []stackmatch.Rule, id string) int {
	for i := range rules {
		if rules[i].ID == id {
			return i
		}
	}
	return -1
}

// worker is a group that APP-001 of the example matches.
func worker() *stackmatch.Group {
	return &stackmatch.Group{
		ID: 7, Count: 12, Oldest: 20 * time.Minute, Median: 10 * time.Minute, WaitReason: "chan receive", Leaked: 2,
		Stack: []frame.Frame{
			{Function: "example.com/app/upload.(*Worker).reply", File: "worker.go", Line: 10},
			{Function: "example.com/app/upload.(*Worker).run", File: "worker.go", Line: 20},
		},
		Labels:    []stackmatch.Label{{Key: "leakguard_controller", Value: "bucket"}, {Key: "tenant", Value: "blue"}},
		CreatedBy: frame.Frame{Function: "example.com/app/upload.Start", File: "start.go", Line: 5},
		Culprit:   frame.Frame{Function: "example.com/app/upload.(*Worker).reply", File: "worker.go", Line: 10}, CulpritOrigin: frame.Main,
	}
}
