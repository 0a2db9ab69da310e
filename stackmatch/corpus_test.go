package stackmatch_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/leakguard/leakguard/stackmatch"
)

// corpusCase is one way of looking at a rebuilt report: its dumps over time together, or one of its variants.
type corpusCase struct {
	name    string
	files   []string
	objects string
	want    corpusExpectation
}

// corpusExpectation is a report's sidecar.
type corpusExpectation struct {
	ID         string             `json:"id"`
	Verdict    stackmatch.Verdict `json:"verdict"`
	Category   string             `json:"category"`
	Culprit    string             `json:"culprit_function"`
	Visible    bool               `json:"culprit_visible_in_user_or_library_code"`
	Leaked     int64              `json:"leaked_count"`
	Files      []string           `json:"files"`
	Foreground map[string]int64   `json:"foreground_goroutines_by_file"`
	Extra      map[string]int     `json:"extra"`
}

const corpusDir = "testdata/corpus"

// corpusCases reads the sidecars. Series (t0, t1, t2) are one case, with the numbers of objects where the report has
// them; files without a time are alternatives, each a case of its own.
func corpusCases(t *testing.T) []corpusCase {
	t.Helper()
	sidecars, err := filepath.Glob(corpusDir + "/*.json.gz")
	if err != nil || len(sidecars) == 0 {
		t.Fatalf("no sidecars in %s: %v", corpusDir, err)
	}
	var out []corpusCase
	for _, name := range sidecars {
		var want corpusExpectation
		if err := json.Unmarshal(gunzip(t, name), &want); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		series := corpusCase{name: want.ID, want: want, objects: objectsOf(want.Extra)}
		for _, f := range want.Files {
			switch {
			case regexp.MustCompile(`\.t[0-9]\.`).MatchString(f):
				series.files = append(series.files, f)
			default:
				v := corpusCase{name: variantName(want.ID, f, len(want.Files)), want: want, files: []string{f}}
				v.want.Leaked = variantCount(&want, f)
				out = append(out, v)
			}
		}
		if len(series.files) > 0 {
			out = append(out, series)
		}
	}
	return out
}

// variantName names one of several files of a report by what stands behind its slug.
func variantName(id, file string, files int) string {
	if files == 1 {
		return id
	}
	_, rest, _ := strings.Cut(file, ".")
	return id + "/" + strings.TrimSuffix(rest, ".txt")
}

// variantCount is how many goroutines a variant has on top of the background, for reports that lose all of them.
func variantCount(want *corpusExpectation, file string) int64 {
	n, ok := want.Foreground[file]
	switch {
	case !ok, want.ID == "C42": // C42 has a test's own goroutines in front, too
		return want.Leaked
	case strings.Contains(file, ".go14."):
		return 22 // of 24: the others are the one that writes the dump and the finalizer goroutine
	}
	return n
}

// objectsOf gives the gauge of live objects as the command's flag takes it.
func objectsOf(extra map[string]int) string {
	var keys []string
	for k := range extra {
		keys = append(keys, k)
	}
	slices.Sort(keys) // ..._t0 before ..._t1
	var numbers []string
	for _, k := range keys {
		numbers = append(numbers, strconv.Itoa(extra[k]))
	}
	return strings.Join(numbers, ",")
}

func gunzip(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// buildCommand builds the command, so that the corpus goes through all of it.
func buildCommand(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "stackmatch")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", name, "./cmd/stackmatch").CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, out)
	}
	return name
}

// runCommand analyses files with the command and checks that its exit status fits.
func runCommand(t *testing.T, command, objects string, files ...string) stackmatch.Analysis {
	t.Helper()
	args := []string{"-o", "json"}
	if objects != "" {
		args = append(args, "--objects", objects)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), command, append(args, files...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	status := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if status > 1 {
		t.Fatalf("status %d: %s", status, stderr.Bytes())
	}
	var a stackmatch.Analysis
	if err := json.Unmarshal(stdout.Bytes(), &a); err != nil {
		t.Fatalf("output is no JSON: %v\n%s", err, stdout.Bytes())
	}
	wantStatus := 1
	if a.Verdict == stackmatch.VerdictBenign {
		wantStatus = 0
	}
	if status != wantStatus {
		t.Errorf("exit status: got %d, want %d for verdict %s", status, wantStatus, a.Verdict)
	}
	return a
}

// corpusResult is what was found of one case.
type corpusResult struct {
	verdict           stackmatch.Verdict
	category, culprit string
	count             int64
}

// resultOf takes the first finding and sums the counts of all that are not harmless. For a benign case it is the first
// finding of the expected category, since there may be several harmless things.
func resultOf(a stackmatch.Analysis, category string) corpusResult {
	r := corpusResult{verdict: a.Verdict}
	if len(a.Findings) > 0 {
		r.category, r.culprit = a.Findings[0].Category, a.Findings[0].Culprit.Function
	}
	for _, f := range a.Findings {
		if f.Verdict != stackmatch.VerdictBenign {
			r.count += f.Count
		}
		if a.Verdict == stackmatch.VerdictBenign && f.Category == category {
			r.category = category
		}
	}
	return r
}

// TestCorpus puts every report through the command: as it is, with other names, without the number of objects, and one
// dump where only two can decide. The first part's output has a table of case, verdict and culprit.
func TestCorpus(t *testing.T) {
	command := buildCommand(t)
	t.Run("reports", func(t *testing.T) { testCorpusReports(t, command) })
	t.Run("renamed", func(t *testing.T) { testCorpusRenamed(t, command) })
	t.Run("without gauge", func(t *testing.T) { testCorpusWithoutGauge(t, command) })
	t.Run("staircase", func(t *testing.T) { testCorpusStaircase(t, command) })
	t.Run("single dumps", func(t *testing.T) { testCorpusSingleDumps(t, command) })
}

func testCorpusReports(t *testing.T, command string) {
	t.Helper()
	var score corpusScore
	for _, c := range corpusCases(t) {
		t.Run(c.name, func(t *testing.T) {
			var files []string
			for _, f := range c.files {
				files = append(files, filepath.Join(corpusDir, f+".gz"))
			}
			got := resultOf(runCommand(t, command, c.objects, files...), c.want.Category)
			score.add(c, got)
			if got.verdict != c.want.Verdict {
				t.Errorf("verdict: got %s, want %s", got.verdict, c.want.Verdict)
			}
			if got.category != c.want.Category {
				t.Errorf("category: got %s, want %s", got.category, c.want.Category)
			}
			if c.want.Verdict == stackmatch.VerdictBenign {
				return
			}
			if !culpritFits(c, got.culprit) {
				t.Errorf("culprit: got %s, want %s", got.culprit, c.want.Culprit)
			}
			if got.count != c.want.Leaked {
				t.Errorf("count: got %d, want %d", got.count, c.want.Leaked)
			}
		})
	}
	t.Log("\n" + score.table())
}

// culpritFits compares culprits. C35's sidecar names that of the old report; its modern twins have names of their own,
// all of one operator.
func culpritFits(c corpusCase, got string) bool {
	if c.want.ID == "C35" && !strings.Contains(c.name, "go14") {
		return strings.HasPrefix(got, "example.com/widget-operator/")
	}
	return got == c.want.Culprit
}

// testCorpusWithoutGauge shows what is said when nobody knows the number of objects: growth of one goroutine per object
// is suspect, not a leak.
func testCorpusWithoutGauge(t *testing.T, command string) {
	t.Helper()
	want := map[string]stackmatch.Verdict{"C33": stackmatch.VerdictLeak, "C64": stackmatch.VerdictSuspect}
	for _, c := range corpusCases(t) {
		verdict, ok := want[c.want.ID]
		if !ok {
			continue
		}
		var files []string
		for _, f := range c.files {
			files = append(files, filepath.Join(corpusDir, f+".gz"))
		}
		if got := runCommand(t, command, "", files...); got.Verdict != verdict {
			t.Errorf("%s: got %s, want %s", c.name, got.Verdict, verdict)
		}
		delete(want, c.want.ID)
	}
	if len(want) > 0 {
		t.Errorf("not in the corpus: %v", want)
	}
}

// testCorpusStaircase looks at the first two steps of the staircase only: the growth, not what is there by design.
func testCorpusStaircase(t *testing.T, command string) {
	t.Helper()
	got := runCommand(t, command, "", corpusDir+"/C07-kcm-gc-ladder.t0.debug1.txt.gz", corpusDir+"/C07-kcm-gc-ladder.t1.debug1.txt.gz")
	if r := resultOf(got, ""); r.verdict != stackmatch.VerdictLeak || r.category != "informer-event-handler" || r.count != 80 {
		t.Errorf("got %+v, want a leak of 80 handler goroutines", r)
	}
}

// testCorpusSingleDumps shows what one dump alone may say where only two decide.
func testCorpusSingleDumps(t *testing.T, command string) {
	t.Helper()
	tests := []struct {
		file string
		want stackmatch.Verdict
	}{
		{"C07-kcm-gc-ladder.t0.debug1.txt", stackmatch.VerdictBenign},
		{"C24-istio-leader-election.t0.debug2.txt", stackmatch.VerdictBenign},
		{"C24-istio-leader-election.t1.json.log", stackmatch.VerdictSuspect},
		{"C33-gitpod-grpc-listeners.t1.debug2.txt", stackmatch.VerdictSuspect},
		{"C54-cilium-controllers.t0.debug2.txt", stackmatch.VerdictSuspect},
		{"C64-capi-health-per-cluster.t1.debug1.txt", stackmatch.VerdictSuspect},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			if got := runCommand(t, command, "", filepath.Join(corpusDir, tt.file+".gz")); got.Verdict != tt.want {
				t.Errorf("got %s, want %s", got.Verdict, tt.want)
			}
		})
	}
}

// corpusScore adds up how good the answers are.
type corpusScore struct {
	rows                           [][]string
	leaks, found, alarms           int
	right                          int
	byCategory                     map[string][2]int // culprits right, cases
	benign, benignRight, countsOff int
}

func (s *corpusScore) add(c corpusCase, got corpusResult) {
	mark := "ok"
	if got.verdict != c.want.Verdict {
		mark = "WRONG"
	}
	s.rows = append(s.rows, []string{c.name, c.want.Category, string(c.want.Verdict), string(got.verdict), mark, strconv.FormatInt(got.count, 10), got.culprit})
	if got.verdict == stackmatch.VerdictLeak {
		s.alarms++
	}
	if c.want.Verdict != stackmatch.VerdictLeak {
		s.benign++
		if got.verdict == c.want.Verdict {
			s.benignRight++
		}
		return
	}
	s.leaks++
	if got.verdict == stackmatch.VerdictLeak {
		s.found++
	}
	if s.byCategory == nil {
		s.byCategory = map[string][2]int{}
	}
	n := s.byCategory[c.want.Category]
	n[1]++
	if culpritFits(c, got.culprit) {
		n[0]++
		s.right++
	}
	s.byCategory[c.want.Category] = n
	if got.count != c.want.Leaked {
		s.countsOff++
	}
}

// table prints the cases and the sums.
func (s *corpusScore) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "case\tcategory\twant\tgot\t\tcount\tculprit")
	for _, row := range s.rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // into memory
	fmt.Fprintf(&b, "recall %d of %d leaks; precision %d of %d alarms; benign and suspect right %d of %d; culprit right %d of %d; counts off %d\n",
		s.found, s.leaks, s.found, s.alarms, s.benignRight, s.benign, s.right, s.leaks, s.countsOff)
	var names []string
	for name := range s.byCategory {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "culprit %d of %d: %s\n", s.byCategory[name][0], s.byCategory[name][1], name)
	}
	return b.String()
}
