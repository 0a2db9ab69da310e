package traps_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/examples/traps"
)

// claim is a row of the table of traps that cannot run in an operator: what is said of how leaks are found or mended, or
// what does not even compile.
type claim struct {
	row, claim, truth string
	// test shows the truth.
	test func(t *testing.T)
}

// testName is the name of the claim's test.
func (c *claim) testName() string {
	name := runtime.FuncForPC(reflect.ValueOf(c.test).Pointer()).Name()
	return "`" + name[strings.LastIndexByte(name, '.')+1:] + "`"
}

// claims are in the order of the table.
func claims() []claim {
	return append(detectionClaims(), languageClaims()...)
}

func detectionClaims() []claim {
	return []claim{
		{"S1-19a", "a grep for Reconcile, Watch, Tick or AfterFunc in the dump finds leaks", "no line of fifty parked goroutines and ten hung requests matches, and lines of a healthy informer do", TestGrepFindsTheWrongOnes},
		{"S1-19b", "HeapInuse − HeapAlloc grows with what leaks", "it is the other way round: a leak does not move it, memory that was freed in pieces does", TestHeapInuseIsFragmentation},
		{"S1-19c", "Mallocs − Frees grows by 5,000 a second only when something leaks", "between two collections it grows with all garbage; only right after one it tells", TestSlopeIsGarbage},
		{"S1-20a", "runtime.Stack(buf, false) gives the user's goroutines", "it gives the one that calls it", TestStackGivesOne},
		{"S1-20b", "the pattern `.*blocking on chan receive.*` finds receivers", "no version of Go writes that: the header says `[chan receive]`", TestNoHeaderSaysBlockingOn},
		{"S1-20c", "the pattern `.*net/http.*\\n.*runtime.gopark.*` finds hung requests", "dumps leave runtime frames out, and the innermost frame comes first", TestDumpsHaveNoGopark},
		{"S1-20d", "a fixed buffer for runtime.Stack is enough", "what does not fit is cut off without a word; full means too small", TestBufferCutsOff},
		{"S1-21", "rate(go_goroutines[5m])*60 > 50 is a leak", "it is a gauge: a number that only goes up and down has a rate of hundreds; deriv tells", TestRateOfAGauge},
		{"S1-22", "an ASan build finds leaks", "it sees what C allocates: by `CGO_ENABLED=1 go build -asan`, Go's heap and goroutines leak with exit code 0", TestASanSeesC},
		{"S1-24", "timers can be counted in the runtime's metrics", "there is no such metric; they are heap objects of time.newTimer", TestNoTimerMetric},
	}
}

// claimWaits parks on a channel. Its name has none of the words that the claims look for.
func claimWaits(c <-chan struct{}) { <-c }

// parkedDump starts n goroutines and gives the full dump in which all of them are parked. They end with the test.
func parkedDump(t *testing.T, n int) []byte {
	t.Helper()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for range n {
		go claimWaits(release)
	}
	return dumpWith(t, n, func(block string) bool {
		return strings.Contains(block, " [chan receive") && strings.Contains(block, "claimWaits(")
	})
}

// dumpWith waits for a full dump with n goroutines of a kind.
func dumpWith(t *testing.T, n int, is func(block string) bool) []byte {
	t.Helper()
	var dump bytes.Buffer
	for range 200 {
		dump.Reset()
		if err := pprof.Lookup("goroutine").WriteTo(&dump, 2); err != nil {
			t.Fatal(err)
		}
		found := 0
		for block := range strings.SplitSeq(dump.String(), "\n\n") {
			if is(block) {
				found++
			}
		}
		if found >= n {
			return dump.Bytes()
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("no dump with %d such goroutines:\n%s", n, dump.Bytes())
	return nil
}

// hungDump sends n requests to a server that does not answer and gives the full dump in which all of them wait.
func hungDump(t *testing.T, n int) []byte {
	t.Helper()
	url := hangingServer(t)
	for range n {
		go claimAsks(t, url)
	}
	return dumpWith(t, n, func(block string) bool {
		return strings.Contains(block, "claimAsks(") && strings.Contains(block, "net/http.(*persistConn).roundTrip")
	})
}

func TestGrepFindsTheWrongOnes(t *testing.T) {
	grep := regexp.MustCompile(`(Reconcile|Watch|Tick|AfterFunc)`)
	for _, dump := range [][]byte{parkedDump(t, 50), hungDump(t, 10)} {
		for block := range strings.SplitSeq(string(dump), "\n\n") {
			if strings.Contains(block, "claimWaits(") || strings.Contains(block, "claimAsks(") {
				if found := grep.FindString(block); found != "" {
					t.Errorf("%q is in:\n%s", found, block)
				}
			}
		}
	}
	runInformer(t)
	dumpWith(t, 1, func(block string) bool { return strings.Contains(block, "tools/cache.") && grep.MatchString(block) })
}

func TestStackGivesOne(t *testing.T) {
	parkedDump(t, 50)
	buf := make([]byte, 1<<20)
	dump := buf[:runtime.Stack(buf, false)]
	if n := len(regexp.MustCompile(`(?m)^goroutine \d+ \[`).FindAll(dump, -1)); n != 1 || runtime.NumGoroutine() <= 50 {
		t.Errorf("%d goroutines of %d, want 1:\n%s", n, runtime.NumGoroutine(), dump)
	}
}

func TestNoHeaderSaysBlockingOn(t *testing.T) {
	if found := regexp.MustCompile(`.*blocking on chan receive.*`).Find(parkedDump(t, 50)); found != nil {
		t.Errorf("found %q", found)
	}
}

func TestDumpsHaveNoGopark(t *testing.T) {
	dump := hungDump(t, 10)
	if found := regexp.MustCompile(`.*net/http.*\n.*runtime.gopark.*`).Find(dump); found != nil || bytes.Contains(dump, []byte("gopark")) {
		t.Errorf("found %q in:\n%s", found, dump)
	}
}

func TestBufferCutsOff(t *testing.T) {
	const started = 500
	parkedDump(t, started)
	buf := make([]byte, 16<<10)
	n := runtime.Stack(buf, true)
	if found := bytes.Count(buf[:n], []byte("claimWaits(")); n != len(buf) || found >= started {
		t.Errorf("%d of %d goroutines in %d bytes, want less than all in all %d bytes", found, started, n, len(buf))
	}
}

// rate is Prometheus's for evenly spaced samples, per second: what falls is taken for a counter that was reset.
func rate(samples []float64, every time.Duration) float64 {
	var increase float64
	for i := 1; i < len(samples); i++ {
		step := samples[i] - samples[i-1]
		if step < 0 {
			step = samples[i]
		}
		increase += step
	}
	return increase / (every * time.Duration(len(samples)-1)).Seconds()
}

// deriv is Prometheus's, a least squares line, per second.
func deriv(samples []float64, every time.Duration) float64 {
	var sumT, sumV, sumTT, sumTV float64
	for i, v := range samples {
		at := (time.Duration(i) * every).Seconds()
		sumT, sumV, sumTT, sumTV = sumT+at, sumV+v, sumTT+at*at, sumTV+at*v
	}
	n := float64(len(samples))
	return (n*sumTV - sumT*sumV) / (n*sumTT - sumT*sumT)
}

func TestRateOfAGauge(t *testing.T) {
	const every, threshold = 15 * time.Second, 50
	for _, tt := range []struct {
		name string
		at   func(i int) float64
		rate bool // over the threshold
		want float64
	}{
		{"flat", func(int) float64 { return 120 }, false, 0},
		{"up and down", func(i int) float64 { return 100 + 50*float64(i%2) }, true, 0},
		{"sawtooth", func(i int) float64 { return 1000 + 6*float64(i%11) }, true, 0},
		{"60 leaked a minute", func(i int) float64 { return 100 + 15*float64(i) }, true, 60},
	} {
		var samples []float64
		for i := range 41 { // ten minutes
			samples = append(samples, tt.at(i))
		}
		if got := rate(samples[20:], every) * 60; (got > threshold) != tt.rate {
			t.Errorf("%s: rate is %.0f a minute, over %d: want %v", tt.name, got, threshold, tt.rate)
		}
		if got := deriv(samples, every) * 60; got < tt.want-2 || got > tt.want+2 {
			t.Errorf("%s: deriv is %.1f a minute, want %.0f", tt.name, got, tt.want)
		}
	}
}

// asanProgram leaks memory and goroutines of Go, and with an argument memory of C.
const asanProgram = `package main

// #include <stdlib.h>
import "C"

import "os"

var kept [][]byte

func main() {
	for range 100 {
		kept = append(kept, make([]byte, 1<<16))
		go func() { select {} }()
	}
	if len(os.Args) > 1 {
		for range 100 {
			C.malloc(64)
		}
	}
}
`

// TestASanSeesC builds a program that leaks for the address sanitizer, whose check at the end finds what C allocated alone.
func TestASanSeesC(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module asan\n\ngo 1.26\n", "main.go": asanProgram} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-asan", "-o", "program")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "program"), args...).CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err != nil || out != "" {
		t.Errorf("with 100 leaked goroutines and 6 MiB of Go: got %v and %s, want nothing", err, out)
	}
	if out, err := run("C"); err == nil || !strings.Contains(out, "AddressSanitizer") {
		t.Errorf("with 100 blocks of C: got %v and %s, want a report", err, out)
	}
}

// rows are all of the table, but for S2-07b, which is the twin of S2-07a.
const rows = `S1-01a S1-01b S1-01c S1-02 S1-03a S1-03b S1-03c S1-03d S1-03e S1-03f S1-04 S1-05 S1-05b S1-06 S1-07 S1-07g S1-08
S1-09 S1-10 S1-11 S1-12 S1-13 S1-13f S1-14a S1-14b S1-14c S1-14d S1-14e S1-15 S1-15b S1-15c S1-15d S1-15f S1-16 S1-17a S1-17b
S1-17c S1-18 S1-19a S1-19b S1-19c S1-20a S1-20b S1-20c S1-20d S1-21 S1-22 S1-23 S1-24 S2-01 S2-01d S2-01f S2-01x S2-02 S2-03
S2-04 S2-05 S2-06 S2-07a S2-07c S2-07d S2-08 S2-08n S2-09 S2-10 S2-11a S2-11b S2-11c S2-11d S2-11f S2-11h S2-12 S2-13 S2-13b
S2-13c S2-13d S2-14 S2-15 S2-15n S2-16 S2-17 X-1 X-2 X-3 X-4 X-5 X-6`

func TestEveryRowIsHere(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	for _, trap := range traps.All() {
		have[trap.Row] = true
	}
	for _, c := range claims() {
		have[c.row] = true
	}
	for row := range strings.FieldsSeq(rows) {
		if !have[row] {
			t.Errorf("row %s has neither a trap nor a claim", row)
		}
		delete(have, row)
	}
	delete(have, "") // what is in no row
	for row := range have {
		t.Errorf("row %q is not in the table", row)
	}
}
