package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// leaktestSuite is the suite of an operator in leaktest's testdata, which starts and stops a manager in each test.
const leaktestSuite = "github.com/leakguard/leakguard/leakguard/leaktest/testdata/envsuite"

// runSuite runs a part of the suite against a cluster.
func runSuite(t *testing.T, binary, kubeconfig, pattern string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.run="+pattern, "-test.v")
	cmd.Dir = filepath.Join("..", "..", "leakguard", "leaktest", "testdata", "envsuite")
	cmd.Env = append(os.Environ(), "ENVSUITE_KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestLeaktestSuite runs leaktest's own suite on a real kube-apiserver: quiet without leaks, and each leak is found in its
// own test.
func TestLeaktestSuite(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "envsuite.test")
	if out, err := exec.CommandContext(context.Background(), "go", "test", "-c", "-o", binary, leaktestSuite).CombinedOutput(); err != nil {
		t.Fatalf("build the suite: %v\n%s", err, out)
	}
	_, file := cluster(t)
	if out, err := runSuite(t, binary, file, "^(TestQuiet.*|TestTwin)$"); err != nil {
		t.Errorf("the suite without leaks: %v\n%s", err, out)
	}
	out, err := runSuite(t, binary, file, "^TestLeak$")
	if err == nil {
		t.Errorf("the suite with leaks ends well:\n%s", out)
	}
	found, missed := strings.Count(out, "    --- FAIL: TestLeak/"), strings.Count(out, "    --- PASS: TestLeak/")
	if found < 20 || missed > 0 {
		t.Errorf("got %d leaks found and %d missed, want at least 20 and none:\n%s", found, missed, out)
	}
}
