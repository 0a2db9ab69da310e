package bench_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/DataDog/gostackparse"
	"github.com/maruel/panicparse/v2/stack"

	"github.com/leakguard/leakguard/stackmatch"
)

const testdata = "../../stackmatch/testdata/"

// header is the strict count of goroutines: every line, plain or quoted, that begins one.
var header = regexp.MustCompile(`(?:^|\n|"|\\n|F )goroutine \d+ (?:gp=\S+ m=\S+ (?:mp=\S+ )?)?\[`)

// TestPeers reads the same files with all readers, prints what each finds, and wants from ours every goroutine there is.
func TestPeers(t *testing.T) {
	inputs := map[string][]byte{}
	for _, pattern := range []string{"corpus/*.gz", "go*/*.txt", "forms/*.txt"} {
		names, err := filepath.Glob(testdata + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, ".json.gz") {
				inputs[strings.TrimPrefix(name, testdata)] = load(t, name)
			}
		}
	}
	addCarriers(t, inputs)
	var table strings.Builder
	fmt.Fprintf(&table, "%-62s %9s %10s %12s %10s\n", "file", "has", "stackmatch", "gostackparse", "panicparse")
	var sum [4]int
	for _, name := range sorted(inputs) {
		data := inputs[name]
		has := count(t, data)
		d, err := stackmatch.Read(bytes.NewReader(data), stackmatch.ReadOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d.Total != has {
			t.Errorf("%s: read %d goroutines, want %d", name, d.Total, has)
		}
		row := [4]int{has, d.Total, withGostackparse(data), withPanicparse(data)}
		for i := range row {
			sum[i] += row[i]
		}
		fmt.Fprintf(&table, "%-62s %9d %10d %12d %10d\n", name, row[0], row[1], row[2], row[3])
	}
	fmt.Fprintf(&table, "%-62s %9d %10d %12d %10d\n", "all", sum[0], sum[1], sum[2], sum[3])
	t.Log("\n" + table.String())
}

// addCarriers adds one dump as logs hold it.
func addCarriers(t *testing.T, inputs map[string][]byte) {
	text := string(inputs["go1.27/debug2.txt"])
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	inputs["carried/json-string"] = []byte(`{"level":"warn","stacks":` + string(quoted) + "}\n")
	var prefixed, long strings.Builder
	for line := range strings.Lines(text) {
		prefixed.WriteString("2026-01-02T03:04:05.678Z stderr F " + line)
		if strings.HasPrefix(line, "main.deep(") {
			line = "main.deep(" + strings.Repeat("0x1, ", 20_000) + "...)\n"
		}
		long.WriteString(line)
	}
	inputs["carried/cri-log"] = []byte(prefixed.String())
	inputs["carried/lines-over-64KiB"] = []byte(long.String())
	inputs["carried/crlf"] = []byte(strings.ReplaceAll(text, "\n", "\r\n"))
}

func load(t *testing.T, name string) []byte {
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return data
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	return data
}

// count gives the number of goroutines in a file by its headers, or by its first line for debug=1.
func count(t *testing.T, data []byte) int {
	var total int
	for _, format := range []string{"goroutine profile: total %d", "goroutineleak profile: total %d"} {
		if _, err := fmt.Sscanf(string(data[:min(len(data), 60)]), format, &total); err == nil {
			return total
		}
	}
	return len(header.FindAll(data, -1))
}

func withGostackparse(data []byte) int {
	goroutines, _ := gostackparse.Parse(bytes.NewReader(data))
	return len(goroutines)
}

func withPanicparse(data []byte) (n int) {
	defer func() { _ = recover() }() // what it had until then counts
	r := io.Reader(bytes.NewReader(data))
	for range 10 {
		s, suffix, err := stack.ScanSnapshot(r, io.Discard, &stack.Opts{})
		if s != nil {
			n += len(s.Goroutines)
		}
		if err != nil {
			return n
		}
		r = io.MultiReader(bytes.NewReader(suffix), r)
	}
	return n
}

func sorted(m map[string][]byte) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
