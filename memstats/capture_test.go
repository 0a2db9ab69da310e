package memstats_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

func TestCapturesKeepsTheNewest(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "captures")
	c := memstats.Captures{Dir: dir}
	for i := range 12 {
		path, err := c.Write(epoch.Add(time.Duration(i)*time.Second), "heap.pb.gz", []byte{byte(i)})
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || len(data) != 1 || data[0] != byte(i) {
			t.Fatalf("%s: %v, %v", path, data, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "someone-else"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != memstats.MaxCaptures+1 {
		t.Errorf("%d files, want %d captures and one other", len(entries), memstats.MaxCaptures)
	}
	if first := entries[0].Name(); !strings.Contains(first, "T000004") {
		t.Errorf("the oldest left is %s, want that of second 4", first)
	}
}

func TestCapturesRefuses(t *testing.T) {
	t.Parallel()
	if path, err := (memstats.Captures{}).Write(epoch, "heap", nil); path != "" || err != nil {
		t.Errorf("off: %q, %v", path, err)
	}
	c := memstats.Captures{Dir: t.TempDir()}
	for _, name := range []string{"", "..", "../x", "a/b", `a\b`, "a b", strings.Repeat("x", 101)} {
		if _, err := c.Write(epoch, name, nil); !errors.Is(err, memstats.ErrCapture) {
			t.Errorf("name %q: %v, want ErrCapture", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (memstats.Captures{Dir: filepath.Join(file, "dir")}).Write(epoch, "heap", nil); err == nil {
		t.Error("a directory below a file was no error")
	}
}
