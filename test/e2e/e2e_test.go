package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/leakguard/leakguard/leakguard"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/leakguard/leakguard/test/e2e"
)

// These tests run real programs and need real time: what leakguard looks for are leaks that persist.

// paths are the folder of what is built here and the operator's binary in it.
var paths struct{ dir, operator string }

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	ctrl.SetLogger(logr.Discard()) // envtest's
	dir, err := os.MkdirTemp("", "leakguard-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	paths.dir = dir
	if paths.operator, err = buildOperator(context.Background(), runtime.Version()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// buildOperator builds the operator with a release of Go, in this module and so with the newest controller-runtime.
func buildOperator(ctx context.Context, toolchain string) (string, error) {
	binary := filepath.Join(paths.dir, "operator-"+toolchain+".exe") // the name suits every system
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/leakguard/leakguard/examples/operator")
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN="+toolchain)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the operator with %s: %w\n%s", toolchain, err, out)
	}
	return binary, nil
}

// assets gives the folder of kube-apiserver and etcd, after they were built if they had to be.
var assets = sync.OnceValues(func() (string, error) { return e2e.Assets(context.Background(), "..") })

// needAssets gives a real API server to the runs of a test.
func needAssets(t *testing.T) (dir string) {
	t.Helper()
	dir, err := assets()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// result is the part of the operator's JSON that is looked at.
type result struct {
	API                 string             `json:"api"`
	OK                  bool               `json:"ok"`
	Seconds             float64            `json:"seconds"`
	Alarms              []string           `json:"alarms"`
	ReconcilesPerSecond map[string]float64 `json:"reconciles_per_second"`
	Objects             struct {
		Created, Updated, Deleted int
	} `json:"objects"`
	Traps []struct {
		Name, Got, Rule string
		FiringSeconds   float64 `json:"firing_seconds"`
		FiringSamples   uint64  `json:"firing_samples"`
		Count           int64   `json:"count"`
	} `json:"traps"`
	Report leakguard.Report `json:"report"`
}

// run is a run of the operator.
type run struct {
	cmd            *exec.Cmd
	stdout, stderr strings.Builder
}

// start begins a run.
func start(t *testing.T, binary string, environment []string, args ...string) *run {
	t.Helper()
	r := &run{cmd: exec.CommandContext(t.Context(), binary, append(args, "--json")...)}
	r.cmd.Env = append(os.Environ(), "KUBECONFIG=", "KUBEBUILDER_ASSETS=")
	r.cmd.Env = append(r.cmd.Env, environment...)
	r.cmd.Cancel = func() error { return r.cmd.Process.Signal(os.Interrupt) }
	r.cmd.WaitDelay = time.Minute
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// wait waits for the end of a run and gives its result.
func (r *run) wait() (res result, err error) {
	if err = r.cmd.Wait(); err == nil {
		err = json.Unmarshal([]byte(r.stdout.String()), &res)
	}
	if err != nil {
		err = fmt.Errorf("%q: %w\n%s%s", r.cmd.Args[1:], err, r.stderr.String(), r.stdout.String())
	}
	return res, err
}

// fleet is how operators run.
type fleet struct {
	binary      string
	api         string
	environment []string
	atOnce      int
}

// expectAll runs the operator with each of these arguments and wants exit code 0 from all.
func (f fleet) expectAll(t *testing.T, runs ...string) {
	t.Helper()
	var group sync.WaitGroup
	slots := make(chan struct{}, f.atOnce)
	for _, args := range runs {
		slots <- struct{}{}
		run := start(t, f.binary, f.environment, append(strings.Fields(args), "--api="+f.api, "--metrics-bind-address=0")...)
		group.Go(func() {
			defer func() { <-slots }()
			r, err := run.wait()
			if err != nil || !r.OK || r.API != f.api {
				t.Errorf("%s: %v", args, err)
				return
			}
			t.Logf("%s: %d alarms in %.0f s, %.1f reconciles a second of controller app, %d of %d samples", args, len(r.Alarms), r.Seconds,
				r.ReconcilesPerSecond["app"], r.Report.Sampling.Taken, r.Report.Sampling.Due)
			for _, trap := range r.Traps {
				t.Logf("  %s: %s after %.0f s and %d samples: count %d by rule %q", trap.Name, trap.Got, trap.FiringSeconds, trap.FiringSamples, trap.Count, trap.Rule)
			}
		})
	}
	group.Wait()
}

func TestOnARealAPIServer(t *testing.T) {
	t.Parallel()
	environment := []string{"KUBEBUILDER_ASSETS=" + needAssets(t)}
	// After an outage of 20 seconds the watches of client-go may stay away for up to another minute.
	fleet{binary: paths.operator, api: "envtest", environment: environment, atOnce: 2}.expectAll(t,
		"--leak=none --expect=silence --duration=180s --api-outage=20s",
		"--leak=reconcile-goroutine --expect=finding --duration=50s",
	)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return ""
	}
	return string(body)
}

func TestMetricsPassPromtool(t *testing.T) {
	address := freeAddress(t)
	run := start(t, paths.operator, nil, "--api=memory", "--duration=30s", "--scale=0.05", "--expect=finding", "--metrics-bind-address="+address)
	metrics := ""
	for range 120 {
		metrics = get(t, "http://"+address+"/metrics")
		if strings.Contains(metrics, `state="firing"`) && strings.Contains(metrics, `controller="leaky"`) {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if !strings.Contains(metrics, "leakguard_") {
		t.Errorf("no metric of leakguard among:\n%s", metrics)
	}
	check := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	check.Stdin = strings.NewReader(metrics)
	if output, err := check.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, output)
	}
	if _, err := run.wait(); err != nil {
		t.Error(err)
	}
}
