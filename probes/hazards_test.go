package probes_test

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leakguard/leakguard/probes"
)

func TestHazards(t *testing.T) {
	const gib = 1 << 30
	const old = "asynctimerchan=1,gotypesalias=0,httpservecontentkeepheaders=1"
	clean := probes.Settings{
		MemProfileRate: 512 * 1024, MemoryLimit: 900 << 20, CgroupLimit: gib,
		GODEBUG: "gctrace=1,asynctimerchan=0", DefaultGODEBUG: "asynctimerchan=1",
	}
	for _, tt := range []struct {
		name   string
		change func(s *probes.Settings)
		want   []string // notices
		says   string   // in the first reason or advice
	}{
		{"clean", func(*probes.Settings) {}, nil, ""},
		{"timers by the environment", func(s *probes.Settings) { s.GODEBUG = "x=1, asynctimerchan=1" }, []string{"asynctimerchan"}, "276 bytes"},
		{"timers by the build", func(s *probes.Settings) { s.GODEBUG = "" }, []string{"asynctimerchan"}, "asynctimerchan=1"},
		{"the last one counts", func(s *probes.Settings) { s.GODEBUG = "asynctimerchan=1,asynctimerchan=0" }, nil, ""},
		{"timers of a runtime without the setting", func(s *probes.Settings) { s.GODEBUG, s.NoAsyncTimers = "asynctimerchan=1", true }, nil, ""},
		{"old defaults", func(s *probes.Settings) { s.GODEBUG, s.DefaultGODEBUG = "", old }, []string{"old-go-line"}, "a Go before 1.23"},
		{"old defaults, set back", func(s *probes.Settings) { s.DefaultGODEBUG = old }, nil, ""},
		{"old defaults, set again", func(s *probes.Settings) { s.GODEBUG, s.DefaultGODEBUG = "asynctimerchan=2", old }, []string{"asynctimerchan"}, "asynctimerchan=2"},
		{"old defaults of a runtime without the setting", func(s *probes.Settings) { s.GODEBUG, s.DefaultGODEBUG, s.NoAsyncTimers = "", old, true }, nil, ""},
		{"no heap profile", func(s *probes.Settings) { s.MemProfileRate = 0 }, []string{"no-heap-profile"}, "MemProfileRate is 0"},
		{"rate unknown", func(s *probes.Settings) { s.MemProfileRate = -1 }, nil, ""},
		{"limit above the container's", func(s *probes.Settings) { s.MemoryLimit = 2 * gib }, []string{"gomemlimit-above-cgroup"}, "2048 MiB, above the container's limit of 1024 MiB"},
		{"no limit", func(s *probes.Settings) { s.MemoryLimit = math.MaxInt64 }, []string{"no-gomemlimit"}, "GOMEMLIMIT=921MiB"},
		{"no limit and no container", func(s *probes.Settings) { s.MemoryLimit, s.CgroupLimit = math.MaxInt64, 0 }, nil, ""},
		{"timeout", func(s *probes.Settings) { s.RESTTimeout = 3 * time.Second }, []string{"rest-timeout"}, "Timeout is 3s"},
		{"two at once", func(s *probes.Settings) { s.RESTTimeout, s.MemProfileRate = time.Second, 0 }, []string{"no-heap-profile", "rest-timeout"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := clean
			tt.change(&s)
			notices := probes.Hazards(s)
			var ids []string
			for _, n := range notices {
				ids = append(ids, n.ID)
				if n.Reason == "" || n.Advice == "" {
					t.Errorf("%s says %q and advises %q", n.ID, n.Reason, n.Advice)
				}
			}
			if diff := cmp.Diff(tt.want, ids); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
			if len(notices) > 0 && !strings.Contains(notices[0].Reason+notices[0].Advice, tt.says) {
				t.Errorf("%q, %q: want %q in one of them", notices[0].Reason, notices[0].Advice, tt.says)
			}
		})
	}
}

// TestOldGoLine builds a program with the defaults of Go 1.22 and asks it. The notice is there as long as the runtime has the old
// timers, which it lost in Go 1.27.
func TestOldGoLine(t *testing.T) {
	program := filepath.Join(t.TempDir(), "old")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "./testdata/oldgo").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var want []string
	if !probes.CurrentSettings(nil).NoAsyncTimers {
		want = []string{"old-go-line"}
	}
	if is126 := strings.HasPrefix(runtime.Version(), "go1.26"); is126 != (want != nil) {
		t.Errorf("%s has the old timers: %t", runtime.Version(), want != nil)
	}
	for env, want := range map[string][]string{"": want, "asynctimerchan=0": nil} {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(os.Environ(), "GODEBUG="+env)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, strings.Fields(string(out)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("GODEBUG=%s: notices (-want +got):\n%s", env, diff)
		}
	}
}

func TestCurrentSettings(t *testing.T) {
	t.Setenv("GODEBUG", "leakguardtest=1")
	s := probes.CurrentSettings(func() (uint64, error) { return 1 << 30, nil })
	if s.GODEBUG != "leakguardtest=1" || s.CgroupLimit != 1<<30 || s.MemoryLimit <= 0 || s.MemProfileRate <= 0 {
		t.Errorf("settings %+v, want what the environment and the runtime say", s)
	}
	for name, limit := range map[string]func() (uint64, error){
		"none":     nil,
		"error":    func() (uint64, error) { return 7, errors.New("no cgroup") },
		"no limit": func() (uint64, error) { return math.MaxUint64, nil },
	} {
		if s := probes.CurrentSettings(limit); s.CgroupLimit != 0 {
			t.Errorf("%s: limit %d, want unknown", name, s.CgroupLimit)
		}
	}
}
