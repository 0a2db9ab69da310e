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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/leakguard/leakguard/examples/traps"
	"github.com/leakguard/leakguard/leakguard"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/leakguard/leakguard/test/e2e"
)

// These tests run real programs and need real time: what leakguard looks for are leaks that persist.

// paths are the operator's binary and the folder of kube-apiserver and etcd, made by TestMain.
var paths struct{ operator, assets string }

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	ctrl.SetLogger(logr.Discard()) // envtest's
	dir, err := os.MkdirTemp("", "leakguard-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	paths.operator = filepath.Join(dir, "operator.exe") // the name suits every system
	// Built here, in this module, and so with the newest controller-runtime.
	if out, err := exec.CommandContext(context.Background(), "go", "build", "-o", paths.operator, "github.com/leakguard/leakguard/examples/operator").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the operator: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// needAssets gives a real API server to the runs of a test.
func needAssets(t *testing.T) {
	t.Helper()
	if paths.assets != "" {
		return
	}
	dir, err := e2e.Assets(t.Context(), "..")
	if err != nil {
		t.Fatal(err)
	}
	paths.assets = dir
}

// result is the part of the operator's JSON that is looked at.
type result struct {
	API                 string             `json:"api"`
	OK                  bool               `json:"ok"`
	Alarms              []string           `json:"alarms"`
	ReconcilesPerSecond map[string]float64 `json:"reconciles_per_second"`
	Report              leakguard.Report   `json:"report"`
}

// start begins a run of the operator; wait ends with its result.
func start(t *testing.T, environment []string, args ...string) (wait func() (result, error)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), paths.operator, append(args, "--json")...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "KUBEBUILDER_ASSETS="+paths.assets)
	cmd.Env = append(cmd.Env, environment...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() (r result, err error) {
		if err = cmd.Wait(); err == nil {
			err = json.Unmarshal([]byte(stdout.String()), &r)
		}
		if err != nil {
			err = fmt.Errorf("%q: %w\n%s%s", args, err, stderr.String(), stdout.String())
		}
		return r, err
	}
}

// expectAll runs the operator with each of these arguments, at most so many at once, and wants exit code 0 from all.
func expectAll(t *testing.T, api string, atOnce int, runs ...string) {
	t.Helper()
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, args := range runs {
		slots <- struct{}{}
		wait := start(t, nil, append(strings.Fields(args), "--api="+api, "--metrics-bind-address=0")...)
		group.Go(func() {
			defer func() { <-slots }()
			r, err := wait()
			if err != nil || !r.OK || r.API != api {
				t.Errorf("%s: %v", args, err)
				return
			}
			t.Logf("%s: %d alarms, %.1f and %.1f reconciles a second, %d of %d samples", args, len(r.Alarms),
				r.ReconcilesPerSecond["app"], r.ReconcilesPerSecond["leaky"], r.Report.Sampling.Taken, r.Report.Sampling.Due)
		})
	}
	group.Wait()
}

func TestOnARealAPIServer(t *testing.T) {
	needAssets(t)
	// After an outage of 20 seconds the watches of client-go may stay away for up to another minute.
	expectAll(t, "envtest", 3,
		"--leak=none --expect=silence --duration=180s --api-outage=20s",
		"--leak=reconcile-goroutine --expect=finding --duration=50s",
		"--leak=reconcile-goroutine --twin --expect=silence --duration=40s",
		"--leak=lazy-informer --expect=silence --duration=40s",
	)
}

// The leaks of each way to lose a goroutine are found, their twins and what only looks like a leak are silent, with the newest
// controller-runtime. The operator's own tests have the other traps.
func TestTraps(t *testing.T) {
	var runs []string
	for _, name := range []string{"chan-send", "global-channel", "ticker-goroutine", "hung-http-get", "select-forever", "background-goroutine", "watch-idle"} {
		if _, err := traps.Find(name); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, "--expect=finding --until-found --duration=120s --leak="+name, "--expect=silence --duration=40s --twin --leak="+name)
	}
	for _, name := range []string{"lazy-informer", "shared-http", "worker-per-object"} {
		runs = append(runs, "--expect=silence --duration=40s --leak="+name)
	}
	expectAll(t, "memory", 4, runs...)
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
	wait := start(t, nil, "--api=memory", "--duration=30s", "--scale=0.05", "--expect=finding", "--metrics-bind-address="+address)
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
	if _, err := wait(); err != nil {
		t.Error(err)
	}
}
