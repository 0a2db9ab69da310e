package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leakguard/leakguard/examples/traps"
	"github.com/leakguard/leakguard/leakguard"
)

// These tests run the real program, with its API server in a child process, so they need real time: what leakguard
// looks for are leaks that persist. Several go on at once.

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "operator-test-")
	if err == nil {
		binary = filepath.Join(dir, "operator.exe") // the name suits every system
		var out []byte
		if out, err = exec.CommandContext(context.Background(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(dir)
	if code == 0 {
		if err = goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// binary is the program, built by TestMain.
var binary string

// operatorCommand makes a command whose environment knows of no cluster.
func operatorCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "KUBEBUILDER_ASSETS=")
	cmd.WaitDelay = 10 * time.Second
	return cmd
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

// outcome is how a run of the operator ended.
type outcome struct {
	args           string
	stdout, stderr string
	err            error
}

// together is how many operators run at once.
const together = 6

// runAll runs the operator with each of these arguments, several at once.
func runAll(t *testing.T, runs ...string) []outcome {
	t.Helper()
	outcomes := make([]outcome, len(runs))
	var group sync.WaitGroup
	turn := make(chan struct{}, together)
	for i, args := range runs {
		turn <- struct{}{}
		group.Go(func() {
			defer func() { <-turn }()
			cmd := operatorCommand(t.Context(), append(strings.Fields(args), "--json", "--metrics-bind-address=0")...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			outcomes[i] = outcome{args, stdout.String(), stderr.String(), err}
			t.Logf("ended (error %v): %s", err, args) // progress, where this takes an hour
		})
	}
	group.Wait()
	return outcomes
}

func TestOperatorRuns(t *testing.T) {
	t.Parallel()
	for _, o := range runAll(t,
		"--leak=reconcile-goroutine --expect=finding --duration=50s",
		"--leak=background-goroutine --expect=finding --duration=50s",
		"--leak=reconcile-goroutine --twin --expect=silence --duration=40s",
		"--leak=none --expect=silence --duration=60s --api-outage=10s",
		"--leak=lazy-informer --expect=silence --duration=40s --leader-elect",
	) {
		o.mustBeOK(t)
	}
}

// mustBeOK checks that a run went as it was expected.
func (o *outcome) mustBeOK(t *testing.T) {
	t.Helper()
	var r result
	if err := json.Unmarshal([]byte(o.stdout), &r); o.err != nil || err != nil || !r.OK || r.Report == nil {
		t.Errorf("%s: got %v, %s\n%s\nwant a result that is ok", o.args, o.err, o.stderr, o.stdout)
		return
	}
	t.Logf("%s: %d alarms in %.0f s, %.1f reconciles a second of controller app, %d of %d samples", o.args, len(r.Alarms), r.Seconds,
		r.ReconcilesPerSecond["app"], r.Report.Sampling.Taken, r.Report.Sampling.Due)
	for _, trap := range r.Traps {
		t.Logf("  %s: %s after %.0f s and %d samples: count %d by rule %s", trap.Name, trap.Got, trap.FiringSeconds, trap.FiringSamples, trap.Count, orDash(trap.Rule))
	}
}

// perProcess is how many traps run in one operator.
const perProcess = 14

// batches gives the arguments that run some traps, several in one operator.
func batches(twins bool, which func(*traps.Trap) bool) []string {
	var out []string
	for _, names := range traps.Runs(twins, perProcess, which) {
		out = append(out, "--expect=each --max-pause=-1s --leak="+names)
	}
	return out
}

// trapsScale is what leakguard's intervals are multiplied by, 0.05 unless LEAKGUARD_TRAPS_SCALE says otherwise.
func trapsScale(t *testing.T) float64 {
	t.Helper()
	text := os.Getenv("LEAKGUARD_TRAPS_SCALE")
	if text == "" {
		return 0.05
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return scale
}

// Each trap has its own finding, of the declared controller, line and rule, its twin has none, and nothing else fires.
// Several traps run in one operator; two more run alone, as in the README.
func TestOperatorFindsEachLeak(t *testing.T) {
	t.Parallel()
	scale := trapsScale(t)
	timed := func(unscaled time.Duration) string {
		return fmt.Sprintf(" --scale=%v --duration=%v", scale, time.Duration(scale*float64(unscaled)))
	}
	find := " --until-found" + timed(time.Hour)
	runs := []string{"--leak=chan-send --expect=finding" + find, "--leak=event-handlers --expect=finding" + find}
	for _, args := range batches(false, func(t *traps.Trap) bool { return t.Expect == traps.ExpectAlarm }) {
		runs = append(runs, args+find)
	}
	for _, args := range batches(false, remarked) {
		runs = append(runs, args+timed(1900*time.Second)) // growth that is certain takes 24 minutes, and the start-up before that 4
	}
	for _, args := range batches(false, func(t *traps.Trap) bool { return t.Expect == traps.ExpectSilent }) {
		runs = append(runs, args+timed(800*time.Second))
	}
	for _, args := range batches(true, func(t *traps.Trap) bool { return t.Twin != nil }) {
		runs = append(runs, args+" --twin"+timed(800*time.Second))
	}
	for _, o := range runAll(t, runs...) {
		o.mustBeOK(t)
	}
}

// remarked are the traps that are listed or noticed, which takes some samples.
func remarked(t *traps.Trap) bool {
	return t.Expect == traps.ExpectListed || t.Expect == traps.ExpectNotice
}

// A verdict that cannot fail is worth nothing.
func TestOperatorFailsWhenTheExpectationIsWrong(t *testing.T) {
	want := []string{"expected silence", "no such finding", "reconciles a second", "select-forever: expected alarm"}
	for i, o := range runAll(t,
		"--leak=reconcile-goroutine --expect=silence --duration=12s --scale=0.05",
		"--leak=reconcile-goroutine --expect=finding --duration=1s",
		"--leak=none --expect=silence --duration=12s --api-outage=11s",
		"--leak=chan-send,select-forever --expect=each --duration=1s",
	) {
		exit := new(exec.ExitError)
		if !errors.As(o.err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(o.stderr, want[i]) {
			t.Errorf("%s: got %v, %s\n%s\nwant exit code 1 and %q", o.args, o.err, o.stderr, o.stdout, want[i])
		}
	}
}

// get gives a page of the running operator, or "" while there is none.
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	response, err := c.Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, within time.Duration, holds func() bool) {
	t.Helper()
	for range int(within / (200 * time.Millisecond)) {
		if holds() {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatalf("%s: not within %v", what, within)
}

func TestEndpointsWhileItLeaks(t *testing.T) {
	address := freeAddress(t)
	cmd := operatorCommand(t.Context(), "--duration=0", "--scale=0.05", "--metrics-bind-address="+address)
	var output strings.Builder
	cmd.Stdout = &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a firing finding of the controller among the metrics", time.Minute, func() bool {
		for line := range strings.Lines(get(t, "http://"+address+"/metrics")) {
			if strings.HasPrefix(line, "leakguard_") && strings.Contains(line, `controller="leaky"`) && strings.Contains(line, `state="firing"`) && !strings.HasSuffix(line, " 0\n") {
				return true
			}
		}
		return false
	})
	var r leakguard.Report
	if err := json.Unmarshal([]byte(get(t, "http://"+address+"/debug/leakguard?format=json")), &r); err != nil {
		t.Error(err)
	}
	if r.Firing() != 1 || r.Findings[0].Controller != "leaky" {
		t.Errorf("got %v on the debug page, want one firing finding of controller leaky", r.Findings)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	line := regexp.MustCompile(`FIRING  controller=leaky count=\d+ at reconcile_goroutine\.go:\d+\n`)
	if !line.MatchString(output.String()) {
		t.Errorf("got %s\nwant a line like %s", output.String(), line)
	}
}

// Whatever way the operator ends, its API server must not outlive it.
func TestNothingIsLeftAfterAKill(t *testing.T) {
	cmd := operatorCommand(t.Context(), "--duration=0", "--metrics-bind-address=0")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	header := ""
	found := regexp.MustCompile(`child process (\d+) at https://(\S+)`)
	for !found.MatchString(header) {
		n, readErr := stdout.Read(buffer)
		if header += string(buffer[:n]); readErr != nil {
			t.Fatalf("%v after %q", readErr, header)
		}
	}
	match := found.FindStringSubmatch(header)
	if pid, convErr := strconv.Atoi(match[1]); convErr != nil || pid == cmd.Process.Pid {
		t.Errorf("the API server is process %s, want another one than %d", match[1], cmd.Process.Pid)
	}
	if err = cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err = cmd.Wait(); err == nil {
		t.Error("a killed process ended well")
	}
	eventually(t, "the end of the API server", 20*time.Second, func() bool {
		c, dialErr := (&net.Dialer{}).DialContext(t.Context(), "tcp", match[2])
		if dialErr == nil {
			_ = c.Close()
		}
		return dialErr != nil
	})
}
