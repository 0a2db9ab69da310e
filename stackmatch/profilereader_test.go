package stackmatch_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"github.com/leakguard/leakguard/stackmatch"
)

// park starts n goroutines that wait until the test ends. kinds is how many different stacks and label sets they have;
// unique gives each a label of its own.
func park(tb testing.TB, n int, unique bool) {
	tb.Helper()
	stop := make(chan struct{})
	var running, done sync.WaitGroup
	running.Add(n)
	done.Add(n)
	for i := range n {
		labels := pprof.Labels("controller", "c"+strconv.Itoa(i%10))
		if unique {
			labels = pprof.Labels("controller", "c"+strconv.Itoa(i%10), "reconcile", strconv.FormatInt(int64(i)*7919, 36))
		}
		pprof.Do(context.Background(), labels, func(context.Context) {
			go func() {
				defer done.Done()
				descend(i%8, func() {
					running.Done()
					wait(i%3, stop)
				})
			}()
		})
	}
	running.Wait()
	tb.Cleanup(func() {
		close(stop)
		done.Wait()
	})
}

//go:noinline
func descend(depth int, f func()) {
	if depth == 0 {
		f()
		return
	}
	descend(depth-1, f)
}

//go:noinline
func wait(kind int, stop chan struct{}) {
	switch kind {
	case 0:
		<-stop
	case 1:
		select {
		case <-stop:
		case <-make(chan struct{}):
		}
	default:
		for range stop {
		}
	}
}

func capture(tb testing.TB) []byte {
	tb.Helper()
	var buf bytes.Buffer
	if err := stackmatch.CaptureProfile(&buf); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}

// TestProfileReaderOracle compares with the reader of google/pprof, sample by sample.
func TestProfileReaderOracle(t *testing.T) {
	park(t, 300, true)
	data := capture(t)
	var p stackmatch.ProfileReader
	groups, err := p.Read(nil, data)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, g := range groups {
		got[groupText(g)] += g.Count
	}
	if diff := cmp.Diff(oracle(t, data), got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func groupText(g stackmatch.Group) string {
	var b strings.Builder
	for _, f := range g.Stack {
		fmt.Fprintf(&b, "%s %s:%d\n", f.Function, f.File, f.Line)
	}
	for _, l := range g.Labels {
		fmt.Fprintf(&b, "%s=%s\n", l.Key, l.Value)
	}
	return b.String()
}

// oracle groups a profile with the reader of google/pprof and the rules of debug=1 for the runtime's frames.
func oracle(t *testing.T, data []byte) map[string]int {
	t.Helper()
	prof, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, s := range prof.Sample {
		var lines, all []string
		for _, l := range s.Location {
			for _, line := range l.Line {
				text := fmt.Sprintf("%s %s:%d\n", line.Function.Name, line.Function.Filename, line.Line)
				all = append(all, text)
				if len(lines) > 0 || !strings.HasPrefix(line.Function.Name, "runtime.") {
					lines = append(lines, text)
				}
			}
		}
		for len(lines) > 0 && (strings.HasPrefix(lines[len(lines)-1], "runtime.main ") || strings.HasPrefix(lines[len(lines)-1], "runtime.goexit ")) {
			lines = lines[:len(lines)-1]
		}
		if len(lines) == 0 { // a goroutine of the runtime's own, such as one that runs finalizers
			lines = all
			if n := len(all); n > 1 && strings.HasPrefix(all[n-1], "runtime.goexit ") {
				lines = all[:n-1]
			}
		}
		for _, key := range slices.Sorted(maps.Keys(s.Label)) {
			lines = append(lines, key+"="+s.Label[key][0]+"\n")
		}
		want[strings.Join(lines, "")] += int(s.Value[0])
	}
	return want
}

func TestProfileReaderReasons(t *testing.T) {
	park(t, 30, false)
	var p stackmatch.ProfileReader
	want := map[string]int{"chan receive": 20, "select": 10}
	seen := map[string]int{}
	for range 1000 { // until the last one has stopped
		clear(seen)
		groups, err := p.Read(nil, capture(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			if _, ok := g.Label("controller"); ok {
				seen[g.WaitReason] += g.Count
			}
		}
		if maps.Equal(want, seen) {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("wait reasons %v, want %v", seen, want)
}

// TestProfileReaderAgain reads the same profile many times: groups and ids stay, and next to nothing is allocated.
func TestProfileReaderAgain(t *testing.T) {
	park(t, 1000, true)
	data := unzip(t, capture(t)) // compress/flate makes its tables anew for each block
	var p stackmatch.ProfileReader
	first, err := p.Read(nil, data)
	if err != nil {
		t.Fatal(err)
	}
	var again []stackmatch.Group
	allocs := testing.AllocsPerRun(20, func() {
		if again, err = p.Read(again[:0], data); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Errorf("%v allocations for a profile like the one before, want none", allocs)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("second reading (-first +second):\n%s", diff)
	}
	var fresh stackmatch.ProfileReader
	other, err := fresh.Read(nil, data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, other); diff != "" {
		t.Errorf("another reader (-first +other):\n%s", diff)
	}
}

func BenchmarkTick(b *testing.B) {
	for _, unique := range []bool{false, true} {
		for _, n := range []int{100, 1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("unique=%v/goroutines=%d", unique, n), func(b *testing.B) {
				park(b, n, unique)
				var buf bytes.Buffer
				b.Run("write", func(b *testing.B) {
					for b.Loop() {
						buf.Reset()
						if err := stackmatch.CaptureProfile(&buf); err != nil {
							b.Fatal(err)
						}
					}
				})
				b.Run("read", func(b *testing.B) {
					b.ReportAllocs()
					var p stackmatch.ProfileReader
					var groups []stackmatch.Group
					var err error
					for b.Loop() {
						if groups, err = p.Read(groups[:0], buf.Bytes()); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(len(groups)), "groups")
				})
			})
		}
	}
}
