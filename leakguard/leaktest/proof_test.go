package leaktest_test

import (
	"strings"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
)

// TestProof wants the runtime's word on a goroutine where the runtime has one (Go 1.27), and no word where it has none.
func TestProof(t *testing.T) {
	const proven, unproven = "the runtime's leak profile proves that it can never run again", "the runtime's leak profile has no proof"
	binary := buildTests(t, "testmain")
	for _, tt := range []struct {
		test, says string
		env        []string
	}{
		{"TestLeak", proven, nil},
		{"TestReachable", unproven, nil},
		{"TestLeak", "", []string{"NOPROOF=1"}},
	} {
		out, code := runTests(t, binary, tt.env, "-test.run=^"+tt.test+"$")
		if code != 1 || !strings.Contains(out, tt.test+" left 1") {
			t.Errorf("%s ends with %d, want 1:\n%s", tt.test, code, out)
		}
		if !stackmatch.HasLeakProfile() {
			tt.says = ""
		}
		if said := strings.Contains(out, "leak profile"); said != (tt.says != "") || !strings.Contains(out, tt.says) {
			t.Errorf("%s %v: the report does not say %q, or says something of the leak profile:\n%s", tt.test, tt.env, tt.says, out)
		}
	}
}
