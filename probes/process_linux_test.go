package probes_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/leakguard/leakguard/probes"
)

// TestOpenFilesShapes opens and closes pipes.
func TestOpenFilesShapes(t *testing.T) {
	wantShapes(t, func(t *testing.T) func(n int) probes.Reading {
		t.Helper()
		p := probes.NewProcess()
		var open []*os.File
		t.Cleanup(func() {
			for _, f := range open {
				_ = f.Close()
			}
		})
		return func(n int) probes.Reading {
			t.Helper()
			for len(open) < n {
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, r)
				_ = w.Close()
			}
			for len(open) > n {
				_ = open[0].Close()
				open = open[1:]
			}
			r, ok := find(t, p, "open files: pipe")
			if !ok || r.Advice == "" || r.Climbing != (r.Reason != "") {
				t.Fatalf("%d pipes: got %+v (there: %t), want an advice, and a reason when they climb", n, r, ok)
			}
			return r
		}
	})
}

func TestOpenFiles(t *testing.T) {
	p := probes.NewProcess()
	counts := func() map[string]float64 {
		out := map[string]float64{}
		for _, r := range p.Read(t.Context(), nil) {
			out[r.Resource] = r.Count
		}
		return out
	}
	before := counts()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	during := counts()
	for _, c := range []interface{ Close() error }{r, w, f, l} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	after := counts()
	for resource, n := range map[string]float64{"open files: pipe": 2, "open files: file": 1, "open files: socket": 1, "open files": 4} {
		if got := during[resource] - after[resource]; got != n {
			t.Errorf("%s: %v more than after, want %v (%v, %v, %v)", resource, got, n, before[resource], during[resource], after[resource])
		}
	}
}

// TestChildren starts children that end, and waits for them late.
func TestChildren(t *testing.T) {
	p := probes.NewProcess()
	if _, ok := find(t, p, "child processes"); !ok {
		t.Fatal("the kernel does not list child processes")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var children []*exec.Cmd
	for range 3 {
		c := exec.CommandContext(ctx, "cat")
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, c)
		defer func() { _ = in.Close() }()
		defer func() { _ = out.Close() }()
	}
	if r, _ := find(t, p, "child processes"); r.Count != 3 {
		t.Errorf("%v children, want 3", r.Count)
	}
	for _, c := range children {
		if err := c.Process.Kill(); err != nil {
			t.Error(err)
		}
		for { // until the kernel has taken note, and before anybody waits
			state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
			if err != nil || bytes.Contains(state, []byte(") Z ")) {
				break
			}
		}
	}
	if r, ok := find(t, p, "child processes never waited for"); ok {
		t.Errorf("%v at the first sight, want none: somebody may be about to wait", r.Count)
	}
	if r, _ := find(t, p, "child processes never waited for"); r.Count != 3 || !r.Leaked {
		t.Errorf("%v never waited for, leaked %v, want 3, true", r.Count, r.Leaked)
	}
	for _, c := range children {
		_ = c.Wait()
	}
	if r, _ := find(t, p, "child processes"); r.Count != 0 {
		t.Errorf("%v children after Wait, want none", r.Count)
	}
}
