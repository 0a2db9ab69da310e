package rulefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

// FuzzParse checks that no input makes Parse panic, that errors are of the file and have a line inside of it, and that
// what is taken can be used.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(head + "    when: |\n      group.count > 1 &&\n      group.frames.all(f, f.matches('^a'))\n"))
	f.Add([]byte(silent + "    culprit: {regexp: '^a'}\n"))
	f.Add([]byte("schema: 1\ndisabled: &o [*o]\n"))
	f.Add([]byte("{schema: 1, rules: [{<<: {}}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := rulefile.Parse("r.yaml", data)
		if err != nil {
			checkProblems(t, data, err)
			return
		}
		set, err := file.RuleSet(rulefile.Options{})
		if err != nil {
			t.Fatalf("Parse takes it and RuleSet does not: %v", err)
		}
		set.Match(worker(), nil)
		file.Suppressed(rulefile.Subject{Rule: "GOR-505"}, time.Now())
	})
}

// checkProblems checks the error of a file.
func checkProblems(t *testing.T, data []byte, err error) {
	t.Helper()
	problems := rulefile.Problems(err)
	if !errors.Is(err, rulefile.ErrInvalid) || len(problems) == 0 {
		t.Fatalf("got %v, want problems", err)
	}
	lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 2 // YAML's own ends of line count too
	lines += strings.Count(string(data), "\u0085") + strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029")
	for _, p := range problems {
		if p.Line < 1 || p.Line > lines || p.Reason == "" {
			t.Fatalf("the problem %+v is not in a file of %d lines", p, lines)
		}
	}
}
