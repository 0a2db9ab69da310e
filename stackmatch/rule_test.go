package stackmatch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
)

func TestBuiltinIsValid(t *testing.T) {
	s, err := stackmatch.NewRuleSet(stackmatch.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Len(), len(stackmatch.Builtin()); got != want {
		t.Errorf("rules in the set: got %d, want %d", got, want)
	}
	for _, id := range []string{"GOR-001", "GOR-002"} {
		if _, ok := s.Rule(id); !ok {
			t.Errorf("no built-in rule %s", id)
		}
	}
}

func TestNewRuleSetErrors(t *testing.T) {
	good := stackmatch.Rule{
		ID: "T-1", Title: "t", Severity: stackmatch.SeverityInfo, Categories: []string{"c"}, Doc: "d", Advice: "a",
		Verdict: stackmatch.VerdictLeak, Match: stackmatch.Match{Frames: []stackmatch.Pattern{stackmatch.Exact("main.f")}},
	}
	tests := []struct {
		name   string
		change func(r *stackmatch.Rule)
		field  string
	}{
		{"no id", func(r *stackmatch.Rule) { r.ID = "" }, "id"},
		{"id with a space", func(r *stackmatch.Rule) { r.ID = "T 1" }, "id"},
		{"no title", func(r *stackmatch.Rule) { r.Title = " " }, "title"},
		{"no doc", func(r *stackmatch.Rule) { r.Doc = "" }, "doc"},
		{"no advice", func(r *stackmatch.Rule) { r.Advice = "" }, "advice"},
		{"no category", func(r *stackmatch.Rule) { r.Categories = nil }, "categories"},
		{"empty category", func(r *stackmatch.Rule) { r.Categories = []string{"a", ""} }, "categories[1]"},
		{"unknown severity", func(r *stackmatch.Rule) { r.Severity = "fatal" }, "severity"},
		{"unknown verdict", func(r *stackmatch.Rule) { r.Verdict = "maybe" }, "verdict"},
		{"unknown growing", func(r *stackmatch.Rule) { r.Growing = "maybe" }, "growing"},
		{"milder growing", func(r *stackmatch.Rule) { r.Growing = stackmatch.VerdictSuspect }, "growing"},
		{"empty match", func(r *stackmatch.Rule) { r.Match = stackmatch.Match{MinCount: 3} }, "match"},
		{"empty pattern", func(r *stackmatch.Rule) { r.Match.Frames = append(r.Match.Frames, stackmatch.Pattern{}) }, "match.frames[1]"},
		{"two kinds of pattern", func(r *stackmatch.Rule) { r.Match.Leaf = stackmatch.Pattern{Exact: "a", Prefix: "a"} }, "match.leaf"},
		{"bad regexp", func(r *stackmatch.Rule) { r.Match.Without = []stackmatch.Pattern{stackmatch.Regexp("(")} }, "match.without[0].regexp"},
		{"bad companion", func(r *stackmatch.Rule) { r.Companions = []stackmatch.Pattern{stackmatch.Regexp("[")} }, "companions[0].regexp"},
		{"unknown predicate", func(r *stackmatch.Rule) { r.Match.Predicate = "nope" }, "match.predicate"},
		{"negative count", func(r *stackmatch.Rule) { r.Match.MinCount = -1 }, "match.minCount"},
		{"negative maximum", func(r *stackmatch.Rule) { r.Match.MaxCount = -1 }, "match.maxCount"},
		{"counts that exclude each other", func(r *stackmatch.Rule) { r.Match.MinCount, r.Match.MaxCount = 3, 2 }, "match.minCount"},
		{"negative enough", func(r *stackmatch.Rule) { r.Enough = -1 }, "enough"},
		{"negative wait", func(r *stackmatch.Rule) { r.Match.MinWait = -1 }, "match.minWait"},
		{"empty wait reason", func(r *stackmatch.Rule) { r.Match.WaitReasons = []string{""} }, "match.waitReasons[0]"},
		{"empty label key", func(r *stackmatch.Rule) { r.Match.Labels = map[string]string{"": "x"} }, "match.labels"},
	}
	if _, err := stackmatch.NewRuleSet(good); err != nil {
		t.Fatalf("the good rule: %v", err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := good
			tt.change(&r)
			_, err := stackmatch.NewRuleSet(r)
			if !errors.Is(err, stackmatch.ErrRule) {
				t.Fatalf("got error %v, want ErrRule", err)
			}
			var re *stackmatch.RuleError
			if !errors.As(err, &re) {
				t.Fatalf("got error %v, want a RuleError", err)
			}
			if re.Field != tt.field {
				t.Errorf("field: got %q, want %q (%v)", re.Field, tt.field, err)
			}
			if re.Rule == "" {
				t.Errorf("the error names no rule: %v", err)
			}
		})
	}
	if _, err := stackmatch.NewRuleSet(good, good); err == nil || !strings.Contains(err.Error(), "used twice") {
		t.Errorf("duplicate id: got %v, want an error", err)
	}
}

func TestOverride(t *testing.T) {
	base := stackmatch.Builtin()
	mine := base[3]
	mine.Title = "changed"
	added := base[4]
	added.ID = "MINE-1"
	got, err := stackmatch.Override(base, []stackmatch.Rule{added, mine}, "GOR-606")
	if err != nil {
		t.Fatal(err)
	}
	if got[0].ID != "MINE-1" {
		t.Errorf("first rule: got %s, want the added one", got[0].ID)
	}
	if got[4].ID != mine.ID || got[4].Title != "changed" {
		t.Errorf("rule 4: got %s %q, want the changed %s", got[4].ID, got[4].Title, mine.ID)
	}
	if len(got) != len(base) {
		t.Errorf("got %d rules, want %d", len(got), len(base))
	}
	for _, r := range got {
		if r.ID == "GOR-606" {
			t.Error("GOR-606 is still there")
		}
	}
	if _, err := stackmatch.Override(base, nil, "GOR-77"); !errors.Is(err, stackmatch.ErrRule) {
		t.Errorf("unknown id: got %v, want ErrRule", err)
	}
}
