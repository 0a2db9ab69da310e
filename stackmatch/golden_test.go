package stackmatch_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/stackmatch"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fixtures are the dumps of the committed program testdata/dumper, a folder for each Go version.
func fixtures(tb testing.TB) []string {
	tb.Helper()
	var files []string
	for _, pattern := range []string{"testdata/go*/*.txt", "testdata/go*/*.gz", "testdata/forms/*.txt"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			tb.Fatalf("no fixtures %s: %v", pattern, err)
		}
		files = append(files, names...)
	}
	return files
}

func TestGolden(t *testing.T) {
	for _, name := range fixtures(t) {
		t.Run(filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name), func(t *testing.T) {
			d, err := stackmatch.ReadFile(name, stackmatch.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := dumpText(d)
			golden := name + ".golden"
			if *update {
				if err = os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// dumpText prints everything that was read.
func dumpText(d *stackmatch.Dump) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v line %d total %d announced %d leaks %v truncated %v\n", d.Format, d.Line, d.Total, d.Announced, d.Leaks, d.Truncated)
	for _, e := range d.Errors {
		fmt.Fprintf(&b, "error line %d: %s\n", e.Line, e.Message)
	}
	for _, g := range d.Goroutines {
		fmt.Fprintf(&b, "\ngoroutine %d line %d [%s] wait %v leaked %v locked %v durable %v bubble %d elided %d\n",
			g.ID, g.Line, g.WaitReason, g.Wait, g.Leaked, g.Locked, g.Durable, g.Bubble, g.Elided)
		for _, l := range g.Labels {
			fmt.Fprintf(&b, "label %q = %q\n", l.Key, l.Value)
		}
		for _, f := range g.Stack {
			fmt.Fprintf(&b, "\t%s\n", f)
		}
		if !g.CreatedBy.IsZero() || g.CreatorID != 0 {
			fmt.Fprintf(&b, "created by %s in %d\n", g.CreatedBy, g.CreatorID)
		}
	}
	for _, g := range d.GroupBy("example.com/dumper") {
		fmt.Fprintf(&b, "\ngroup %016x × %d [%s] oldest %v median %v leaked %d members %v\n", g.ID, g.Count, g.WaitReason, g.Oldest, g.Median, g.Leaked, g.Members)
		for _, l := range g.Labels {
			fmt.Fprintf(&b, "label %q = %q\n", l.Key, l.Value)
		}
		if d.Goroutines == nil {
			for _, f := range g.Stack {
				fmt.Fprintf(&b, "\t%s\n", f)
			}
		}
		fmt.Fprintf(&b, "created by %s\nroot %s\nculprit %s (%s)\n", g.CreatedBy, g.Root, g.Culprit, g.CulpritOrigin)
	}
	return b.String()
}

// TestFormsAgree reads what one program printed in three forms: the same groups with the same ids, counts and labels.
func TestFormsAgree(t *testing.T) {
	for _, version := range []string{"go1.26", "go1.27"} {
		t.Run(version, func(t *testing.T) {
			summary := func(file string, reasons bool) map[string]string {
				d, err := stackmatch.ReadFile(filepath.Join("testdata", version, file), stackmatch.ReadOptions{})
				if err != nil {
					t.Fatal(err)
				}
				groups := map[string]string{}
				for _, g := range d.GroupBy("") {
					if g.WaitReason == "running" || g.WaitReason == "" || g.Stack[len(g.Stack)-1].Function == "main.main" {
						continue // the one that takes the dump stands elsewhere each time
					}
					reason := strings.TrimSuffix(g.WaitReason, " (nil chan)") // a profile cannot tell
					if !reasons {
						reason = ""
					}
					if len(g.Stack) > 90 {
						continue // the text leaves out frames, and not the same ones
					}
					groups[fmt.Sprintf("%x %v", g.ID, g.Stack)] = fmt.Sprintf("%d %s %v", g.Count, reason, g.Labels)
				}
				return groups
			}
			text, profile := summary("debug2.txt", true), summary("debug0.pb.gz", true)
			if len(text) < 10 {
				t.Fatalf("%d groups in the text", len(text))
			}
			if diff := cmp.Diff(text, profile); diff != "" {
				t.Errorf("text and profile (-text +profile):\n%s", diff)
			}
		})
	}
}
