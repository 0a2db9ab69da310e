package stackmatch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/stackmatchtest"
)

const rulesDir = "testdata/rules"

func TestBuiltinFixtures(t *testing.T) {
	stackmatchtest.Run(t, rulesDir, nil)
}

// TestBuiltinHaveFixtures keeps every rule with a fixture in which it speaks, and a clean twin in which nothing but
// harmless things is found.
func TestBuiltinHaveFixtures(t *testing.T) {
	ids := map[string]bool{}
	for _, rule := range stackmatch.Builtin() {
		ids[rule.ID] = true
		t.Run(rule.ID, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(rulesDir, rule.ID+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			fixture := string(data)
			spoke := false
			for _, name := range stackmatchtest.Scenarios(fixture) {
				a, err := stackmatchtest.Analyze(fixture, name, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range a.Findings {
					spoke = spoke || f.Rule == rule.ID
				}
				if name == "clean" && a.Verdict != stackmatch.VerdictBenign {
					t.Errorf("the clean scenario: got %s, want benign; %+v", a.Verdict, a.Findings)
				}
			}
			if !spoke {
				t.Error("the rule speaks in none of its scenarios")
			}
			if !strings.Contains(fixture, "=== clean") {
				t.Error("there is no scenario \"clean\"")
			}
		})
	}
	files, err := filepath.Glob(rulesDir + "/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if id := strings.TrimSuffix(filepath.Base(name), ".txt"); !ids[id] {
			t.Errorf("%s belongs to no rule", name)
		}
	}
}
