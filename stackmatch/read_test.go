package stackmatch_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
)

// corpusFiles gives the dumps of the rebuilt reports by name.
func corpusFiles(tb testing.TB) map[string][]byte {
	tb.Helper()
	names, err := filepath.Glob("testdata/corpus/*.gz")
	if err != nil || len(names) == 0 {
		tb.Fatalf("no corpus: %v", err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		short := strings.TrimSuffix(filepath.Base(name), ".gz")
		if strings.HasSuffix(short, ".json") {
			continue
		}
		files[short] = gunzipFile(tb, name)
	}
	return files
}

func gunzipFile(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return unzip(tb, data)
}

func unzip(tb testing.TB, data []byte) []byte {
	tb.Helper()
	r, err := newGzip(data)
	if err != nil {
		tb.Fatal(err)
	}
	if data, err = io.ReadAll(r); err != nil {
		tb.Fatal(err)
	}
	return data
}

var headerPattern = regexp.MustCompile(`(?:^|[\n"]|\\n)goroutine \d+ (?:gp=\S+ m=\S+ (?:mp=\S+ )?)?\[`)

func TestReadCorpus(t *testing.T) {
	for name, data := range corpusFiles(t) {
		t.Run(name, func(t *testing.T) {
			d, err := stackmatch.Read(strings.NewReader(string(data)), stackmatch.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if d.Format == stackmatch.FormatText {
				if want := len(headerPattern.FindAll(data, -1)); d.Total != want || len(d.Goroutines) != want {
					t.Errorf("read %d goroutines, want %d", d.Total, want)
				}
			} else if d.Total != d.Announced {
				t.Errorf("read %d goroutines, want %d", d.Total, d.Announced)
			}
			for _, e := range d.Errors {
				t.Errorf("error %v", e)
			}
			sum := 0
			for _, g := range d.GroupBy("") {
				sum += g.Count
				if len(g.Stack) == 0 && d.Format == stackmatch.FormatText {
					t.Errorf("group without frames: %+v", g)
				}
			}
			if sum != d.Total {
				t.Errorf("groups hold %d, want %d", sum, d.Total)
			}
		})
	}
}

func newGzip(data []byte) (io.Reader, error) { return gzip.NewReader(bytes.NewReader(data)) }
