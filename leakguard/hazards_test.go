package leakguard_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

// hazardsEnv tells the test binary that it is the process whose settings are bad, and which.
const hazardsEnv = "LEAKGUARD_TEST_HAZARDS"

// hazardSettings are those of the process.
type hazardSettings struct {
	Setup       string // how the manager gets its guard, "" for a guard without a manager
	Timeout     time.Duration
	Cgroup      uint64
	NoProfile   bool
	MemoryLimit int64 // 0 for none
}

// TestHazards runs a guard in a process with each bad setting, and with none: there is one notice each, with its reason.
func TestHazards(t *testing.T) {
	if text := os.Getenv(hazardsEnv); text != "" {
		printNotices(t, text)
		return
	}
	const gib = 1 << 30
	timers := []string{"asynctimerchan: GODEBUG asynctimerchan=1 is set"}
	if probes.CurrentSettings(nil).NoAsyncTimers {
		timers = []string{refused}
	}
	timeout := []string{"rest-timeout: rest.Config.Timeout is 3s: every watch dies after exactly that time"}
	for _, tt := range []struct {
		name     string
		settings hazardSettings
		godebug  string
		want     []string // what the notices start with
	}{
		{"none", hazardSettings{Setup: "Setup"}, "", nil},
		{"timers", hazardSettings{}, "asynctimerchan=1", timers},
		{"no heap profile", hazardSettings{NoProfile: true}, "", []string{"no-heap-profile: runtime.MemProfileRate is 0"}},
		{"no GOMEMLIMIT", hazardSettings{Cgroup: gib}, "", []string{"no-gomemlimit: the container's limit is 1024 MiB and GOMEMLIMIT is not set"}},
		{"GOMEMLIMIT", hazardSettings{Cgroup: gib, MemoryLimit: gib / 10 * 9}, "", nil},
		{"GOMEMLIMIT above", hazardSettings{Cgroup: gib, MemoryLimit: 2 * gib}, "", []string{"gomemlimit-above-cgroup: GOMEMLIMIT is 2048 MiB, above the container's limit of 1024 MiB"}},
		{"timeout of NewManager", hazardSettings{Setup: "NewManager", Timeout: 3 * time.Second}, "", timeout},
		{"timeout of Setup", hazardSettings{Setup: "Setup", Timeout: 3 * time.Second}, "", timeout},
		{"timeout of Instrument", hazardSettings{Setup: "Instrument", Timeout: 3 * time.Second}, "", timeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(tt.settings)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHazards$", "-test.v")
			cmd.Env = append(os.Environ(), hazardsEnv+"="+string(text), "GODEBUG="+tt.godebug, "GOMEMLIMIT=")
			out, err := cmd.CombinedOutput()
			if len(tt.want) == 1 && tt.want[0] == refused {
				if err == nil || !strings.Contains(string(out), refused) {
					t.Errorf("got %v, %s\nwant %q", err, out, refused)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var got []string
			for line := range strings.Lines(string(out)) {
				if quoted, is := strings.CutPrefix(strings.TrimSpace(line), noticeLine); is {
					notice, err := strconv.Unquote(quoted)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, notice)
				}
			}
			starts := func(want, got string) bool { return strings.HasPrefix(got, want) }
			if !slices.EqualFunc(tt.want, got, starts) {
				t.Errorf("notices (-want +got):\n%s", cmp.Diff(tt.want, got, cmpopts.EquateEmpty()))
			}
		})
	}
}

// refused is what a runtime without the old timers says instead of starting.
const refused = `removed GODEBUG "asynctimerchan" set to old value`

// noticeLine is what the process with the bad settings prints before each notice.
const noticeLine = "NOTICE "

// printNotices is that process: it makes its settings bad, and prints what its guard says of them.
func printNotices(t *testing.T, text string) {
	t.Helper()
	var s hazardSettings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	leakguard.SetCgroupLimit(s.Cgroup)
	if s.NoProfile {
		runtime.MemProfileRate = 0
	}
	if s.MemoryLimit == 0 {
		s.MemoryLimit = math.MaxInt64
	}
	debug.SetMemoryLimit(s.MemoryLimit)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	guard := hazardousGuard(t, &s)
	done := make(chan error, 1)
	go func() { done <- guard.Start(ctx) }()
	eventually(t, "a sample", func() bool { return !guard.Report().At.IsZero() })
	for _, n := range guard.Report().Notices {
		_, _ = os.Stdout.WriteString("\n" + noticeLine + strconv.Quote(n) + "\n")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// hazardousGuard gives a guard of a manager that is not started, or of none.
func hazardousGuard(t *testing.T, s *hazardSettings) *leakguard.Guard {
	t.Helper()
	options := leakguard.Options{Scale: scale, Registerer: prometheus.NewRegistry()}
	cfg := &rest.Config{Host: "https://127.0.0.1:1", Timeout: s.Timeout}
	fine := &rest.Config{Host: cfg.Host}
	opts := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "127.0.0.1:0"}}
	switch s.Setup {
	case "NewManager":
		mgr, err := leakguard.NewManager(cfg, opts, options)
		if err != nil {
			t.Fatal(err)
		}
		return mgr.Guard()
	case "Instrument":
		mgr, err := leakguard.NewManager(fine, opts, options)
		if err != nil {
			t.Fatal(err)
		}
		mgr.Instrument(cfg)
		mgr.Instrument(cfg)
		return mgr.Guard()
	case "Setup":
		mgr, err := ctrl.NewManager(cfg, opts)
		if err != nil {
			t.Fatal(err)
		}
		guard, err := leakguard.Setup(mgr, options)
		if err != nil {
			t.Fatal(err)
		}
		return guard
	}
	return leakguard.New(options)
}
