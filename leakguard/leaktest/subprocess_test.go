package leaktest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// buildTests compiles the tests of a folder below testdata, which fail on purpose.
func buildTests(t *testing.T, folder string, flags ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), folder+".test")
	args := append([]string{"test", "-c", "-o", binary}, flags...)
	out, err := exec.CommandContext(t.Context(), "go", append(args, "./testdata/"+folder)...).CombinedOutput()
	if err != nil {
		t.Fatalf("building the tests of %s: %v\n%s", folder, err, out)
	}
	return binary
}

// runTests runs a test binary in the folder of its package, as go test does, and gives its output and exit code.
func runTests(t *testing.T, binary string, env []string, flags ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, flags...)
	cmd.Dir = filepath.Join("testdata", strings.TrimSuffix(filepath.Base(binary), ".test"))
	cmd.Env = append(os.Environ(), env...)
	b, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(b), exit.ExitCode()
	}
	if err != nil {
		t.Fatalf("running %s: %v", binary, err)
	}
	return string(b), 0
}

var failedLine = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// failed gives the tests that failed, sorted.
func failed(out string) []string {
	var names []string
	for _, m := range failedLine.FindAllStringSubmatch(out, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

// rounds is how many times the parallel tests run: LEAKTEST_ROUNDS, 10 by default.
func rounds(t *testing.T) int {
	t.Helper()
	s := os.Getenv("LEAKTEST_ROUNDS")
	if s == "" {
		return 10
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("LEAKTEST_ROUNDS=%q is no number", s)
	}
	return n
}

// TestBlame runs ten parallel tests, of which three leak, again and again: the three are blamed, with the line, and nobody else.
func TestBlame(t *testing.T) {
	binary := buildTests(t, "parallel", "-race")
	want := []string{"TestLeakGrandchild", "TestLeakSend", "TestLeakTicker"}
	n := rounds(t)
	for i := range n {
		out, code := runTests(t, binary, nil, "-test.shuffle=on", "-test.parallel=10")
		if code != 1 {
			t.Fatalf("round %d: exit code %d, want 1\n%s", i+1, code, out)
		}
		if diff := cmp.Diff(want, failed(out)); diff != "" {
			t.Fatalf("round %d: blamed tests (-want +got):\n%s%s", i+1, diff, out)
		}
		for _, line := range []string{"go statement at parallel/parallel_test.go:61", "go statement at parallel/parallel_test.go:69", "go statement at parallel/parallel_test.go:81"} {
			if !strings.Contains(out, line) {
				t.Fatalf("round %d does not say %q:\n%s", i+1, line, out)
			}
		}
	}
	out, _ := runTests(t, binary, []string{"CHECK=goleak"}, "-test.shuffle=on", "-test.parallel=10")
	blamed := failed(out)
	t.Logf("leaktest blamed the three in %d of %d rounds and nobody else; goleak in the same suite blames %d of 10 tests: %v", n, n, len(blamed), blamed)
	if len(blamed) <= len(want) {
		t.Errorf("goleak blamed %v: if it can tell parallel tests apart now, the comparison in the documentation is out of date", blamed)
	}
}

func TestVerifyTestMain(t *testing.T) {
	binary := buildTests(t, "testmain")
	tests := []struct {
		name  string
		env   []string
		flags []string
		code  int
		says  []string
		not   []string
	}{
		{name: "clean", flags: []string{"-test.run=^TestClean$"}, not: []string{"leaktest:"}},
		{name: "clean, again and again", flags: []string{"-test.run=^TestClean$", "-test.count=3", "-test.shuffle=on"}, not: []string{"leaktest:"}},
		{name: "nothing runs", flags: []string{"-test.run=^TestNone$"}, not: []string{"leaktest:"}},
		{name: "leak", flags: []string{"-test.run=^(TestClean|TestLeak)$"}, code: 1, says: []string{"PASS", "\nTestLeak left 1:", "testmain_test.go:31"}, not: []string{"TestClean left"}},
		{name: "count", flags: []string{"-test.run=^TestLeak$", "-test.count=3", "-test.shuffle=on"}, code: 1, says: []string{"\nTestLeak left 3:", "3 × goroutine"}},
		{name: "grandchild", flags: []string{"-test.run=^TestLeakGrandchild$"}, code: 1, says: []string{"\nTestLeakGrandchild left 1:"}},
		{name: "timer", flags: []string{"-test.run=^TestLeakTimer$"}, code: 1, says: []string{"\nTestLeakTimer left 1:"}},
		{name: "subtest", flags: []string{"-test.run=^TestParallelLeak$"}, code: 1, says: []string{"\nTestParallelLeak/sub left 1:"}},
		{name: "unknown", env: []string{"STRAY=1"}, flags: []string{"-test.run=^TestClean$"}, code: 1, says: []string{"\nunknown test left 1:"}},
		{name: "failing test", flags: []string{"-test.run=^TestFail$"}, code: 1, says: []string{"failed on purpose"}, not: []string{"leaktest:"}},
		{name: "panicking test", flags: []string{"-test.run=^TestPanic$"}, code: 2, says: []string{"panic: on purpose"}, not: []string{"leaktest:"}},
		{name: "exit", flags: []string{"-test.run=^TestExit$"}, code: 7, not: []string{"leaktest:"}},
		{name: "short", flags: []string{"-test.run=^TestShort$", "-test.short"}, not: []string{"leaktest:"}},
		{name: "not short", flags: []string{"-test.run=^TestShort$"}, code: 1, says: []string{"\nTestShort left 1:"}},
		{name: "benchmark", flags: []string{"-test.run=^$", "-test.bench=.", "-test.benchtime=10x"}, says: []string{"BenchmarkClean"}, not: []string{"leaktest:"}},
		{name: "fuzz seeds", flags: []string{"-test.run=^FuzzClean$"}, not: []string{"leaktest:"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, code := runTests(t, binary, tt.env, tt.flags...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d\n%s", code, tt.code, out)
			}
			for _, s := range tt.says {
				if !strings.Contains(out, s) {
					t.Errorf("the output does not say %q:\n%s", s, out)
				}
			}
			for _, s := range tt.not {
				if strings.Contains(out, s) {
					t.Errorf("the output says %q:\n%s", s, out)
				}
			}
		})
	}
}
