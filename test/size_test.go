package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a minimal operator may grow by when it imports leakguard.
const (
	maxBytes   = 4 << 20
	maxModules = 6
)

// TestWhatLeakguardAdds builds the same operator with and without leakguard, stripped, and compares the files and the
// modules that they link: with a guard in an ordinary manager, and with leakguard's manager.
func TestWhatLeakguardAdds(t *testing.T) {
	t.Parallel()
	const without = "./test/testdata/plain"
	size, plain := binarySize(t, without), modules(t, without)
	for _, with := range []string{"./examples/minimal", "./test/testdata/managed"} {
		grown := binarySize(t, with) - size
		t.Logf("the stripped binary of %s is larger by %.1f MB", with, float64(grown)/1e6)
		if grown > maxBytes {
			t.Errorf("the stripped binary of %s is larger by %d bytes, want at most %d", with, grown, maxBytes)
		}
		var more []string
		for _, m := range modules(t, with) {
			if !slices.Contains(plain, m) {
				more = append(more, m)
			}
		}
		t.Logf("modules that %s links more: %v", with, more)
		if len(more) > maxModules {
			t.Errorf("%s links %d more modules, want at most %d: %v", with, len(more), maxModules, more)
		}
	}
}

func binarySize(t *testing.T, pkg string) int64 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", file, pkg)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func modules(t *testing.T, pkg string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", pkg)
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pkg, err)
	}
	lines := strings.Fields(string(out))
	slices.Sort(lines)
	return slices.Compact(lines)
}
