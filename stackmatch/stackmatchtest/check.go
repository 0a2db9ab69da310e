package stackmatchtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Run checks every file *.txt of a folder against rules (nil means the built-in ones), each file as a subtest.
func Run(t *testing.T, dir string, rules *stackmatch.RuleSet) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures *.txt in %s: %v", dir, err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			t.Helper()
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range Check(string(data), rules) {
				t.Errorf("%s: %v", name, p)
			}
		})
	}
}

// Check checks one fixture against rules (nil means the built-in ones) and gives what differs; nil when all is as
// expected.
func Check(fixture string, rules *stackmatch.RuleSet) []Problem {
	scenarios, problems := parse(fixture)
	for _, s := range scenarios {
		problems = append(problems, s.check(rules)...)
	}
	return problems
}

// Scenarios gives the names of a fixture's scenarios, in order.
func Scenarios(fixture string) []string {
	scenarios, _ := parse(fixture)
	names := make([]string, 0, len(scenarios))
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// Analyze gives what rules (nil means the built-in ones) find in one scenario of a fixture.
func Analyze(fixture, name string, rules *stackmatch.RuleSet) (stackmatch.Analysis, error) {
	scenarios, _ := parse(fixture)
	for _, s := range scenarios {
		if s.name == name {
			a, _, err := s.analyze(rules)
			return a, err
		}
	}
	return stackmatch.Analysis{}, fmt.Errorf("stackmatchtest: no scenario %q", name)
}

// analyze reads the dumps of a scenario and applies the rules.
func (s *scenario) analyze(rules *stackmatch.RuleSet) (stackmatch.Analysis, []*stackmatch.Dump, error) {
	var dumps []*stackmatch.Dump
	for _, d := range s.dumps {
		read, err := stackmatch.Read(strings.NewReader(d.text.String()), stackmatch.ReadOptions{})
		if err != nil {
			return stackmatch.Analysis{}, nil, fmt.Errorf("the dump of line %d: %w", d.line, err)
		}
		dumps = append(dumps, read)
	}
	options := s.options
	options.Rules = rules
	a, err := stackmatch.Analyze(dumps, options)
	return a, dumps, err
}

// check compares one scenario.
func (s *scenario) check(rules *stackmatch.RuleSet) []Problem {
	analysis, dumps, err := s.analyze(rules)
	if err != nil {
		return []Problem{s.problem(s.line, "%v", err)}
	}
	var problems []Problem
	for _, e := range analysis.Errors {
		problems = append(problems, s.problem(s.line, "the dump cannot be read: line %d: %s", e.Line, e.Message))
	}
	last := len(dumps) - 1
	for _, d := range s.dumps[:last] {
		if len(d.wants) > 0 {
			problems = append(problems, s.problem(d.wants[0].line, "want in a dump that is not the scenario's last"))
		}
	}
	return append(problems, s.compare(s.dumps[last].wants, dumps[last], analysis.Findings)...)
}

// compare compares what is wanted with what was found.
func (s *scenario) compare(wants []want, d *stackmatch.Dump, findings []stackmatch.Finding) []Problem {
	var problems []Problem
	wanted := make([]bool, len(findings))
	for i := range wants {
		w := &wants[i]
		stack := stackAt(d, w.header)
		found := false
		for k := range findings {
			if w.matches(&findings[k]) && (stack == nil || hasStack(&findings[k], stack)) {
				wanted[k], found = true, true
			}
		}
		if !found {
			problems = append(problems, s.problem(w.line, "no finding %s here; found: %s", w, list(findings)))
		}
	}
	for k := range findings {
		if !wanted[k] && findings[k].Verdict != stackmatch.VerdictBenign {
			problems = append(problems, s.problem(s.line, "unexpected finding: %s", describe(&findings[k])))
		}
	}
	return problems
}

// problem is something wrong with the scenario.
func (s *scenario) problem(line int, format string, args ...any) Problem {
	return Problem{Scenario: s.name, Line: line, Message: fmt.Sprintf(format, args...)}
}

// matches compares a finding with what is wanted, all but the place.
func (w *want) matches(f *stackmatch.Finding) bool {
	return f.Rule == w.rule && (w.verdict == "" || f.Verdict == w.verdict) && (w.count < 0 || f.Count == w.count) &&
		(w.culprit == "" || f.Culprit.Function == w.culprit) && (w.category == "" || f.Category == w.category)
}

// String writes a want as it stands in the fixture.
func (w *want) String() string {
	out := w.rule
	if w.verdict != "" {
		out += " " + string(w.verdict)
	}
	if w.count >= 0 {
		out += fmt.Sprintf(" count=%d", w.count)
	}
	if w.culprit != "" {
		out += " culprit=" + w.culprit
	}
	if w.category != "" {
		out += " category=" + w.category
	}
	return out
}

// stackAt gives the stack of the goroutine whose header stands on a line; nil when the dump has no goroutines.
func stackAt(d *stackmatch.Dump, line int) []frame.Frame {
	for i := range d.Goroutines {
		if d.Goroutines[i].Line == line {
			return d.Goroutines[i].Stack
		}
	}
	return nil
}

// hasStack reports whether one of the finding's stacks has the functions of a goroutine's stack, whose uppermost frames of the
// runtime may be missing there.
func hasStack(f *stackmatch.Finding, stack []frame.Frame) bool {
	for _, have := range f.Stacks {
		if len(have) > len(stack) {
			continue
		}
		tail := stack[len(stack)-len(have):]
		same := true
		for i := range have {
			same = same && have[i].Function == tail[i].Function
		}
		if same {
			return true
		}
	}
	return false
}

// list describes findings for a message.
func list(findings []stackmatch.Finding) string {
	if len(findings) == 0 {
		return "nothing"
	}
	out := make([]string, 0, len(findings))
	for i := range findings {
		out = append(out, describe(&findings[i]))
	}
	return strings.Join(out, "; ")
}

func describe(f *stackmatch.Finding) string {
	return fmt.Sprintf("%s %s %s count=%d culprit=%s (%s)", f.Rule, f.Verdict, f.Category, f.Count, f.Culprit.Function, f.Reason)
}
