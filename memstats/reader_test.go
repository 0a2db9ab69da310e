package memstats_test

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/leakguard/leakguard/memstats"
)

// TestReaderMatchesMemStats compares with [runtime.ReadMemStats] while nothing allocates: the GC is off, and what the
// comparison itself allocates is bounded by two readings of the Reader around it.
func TestReaderMatchesMemStats(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	reader := memstats.NewReader(memstats.Options{})
	var before, after memstats.Sample
	var m runtime.MemStats
	reader.Read(&before)
	runtime.ReadMemStats(&m)
	reader.Read(&after)
	if len(after.Missing) > 0 && runtime.GOOS == "linux" {
		t.Errorf("missing: %v", after.Missing)
	}
	for _, tt := range []struct {
		name              string
		before, got, want uint64
		slack             uint64
	}{
		{"HeapAlloc", before.HeapAlloc, after.HeapAlloc, m.HeapAlloc, 0},
		{"HeapInuse", before.HeapInuse, after.HeapInuse, m.HeapInuse, 1 << 20},
		{"HeapIdle", before.HeapIdle, after.HeapIdle, m.HeapIdle, 1 << 20},
		{"HeapReleased", before.HeapReleased, after.HeapReleased, m.HeapReleased, 1 << 20},
		{"HeapObjects", before.HeapObjects, after.HeapObjects, m.HeapObjects, 0},
		{"Mallocs", before.Mallocs, after.Mallocs, m.Mallocs, 0},
		{"Frees", before.Frees, after.Frees, m.Frees, 0},
		{"TotalAlloc", before.TotalAlloc, after.TotalAlloc, m.TotalAlloc, 0},
		{"NextGC", before.NextGC, after.NextGC, m.NextGC, 0},
		{"NumGC", before.NumGC, after.NumGC, uint64(m.NumGC), 0},
		{"NumForcedGC", before.NumForcedGC, after.NumForcedGC, uint64(m.NumForcedGC), 0},
		{"StackInuse", before.StackInuse, after.StackInuse, m.StackInuse, 1 << 20},
		{"Sys", before.Sys, after.Sys, m.Sys, 1 << 20},
	} {
		low, high := min(tt.before, tt.got), max(tt.before, tt.got)
		if tt.want+tt.slack < low || tt.want > high+tt.slack {
			t.Errorf("%s: between %d and %d, want %d", tt.name, tt.before, tt.got, tt.want)
		}
	}
	if after.HeapLiveBytes == 0 || after.HeapLiveBytes > after.Sys {
		t.Errorf("HeapLiveBytes = %d after a GC, Sys = %d", after.HeapLiveBytes, after.Sys)
	}
	if after.Goroutines == 0 || after.Threads == 0 || after.GoroutinesCreated == 0 {
		t.Errorf("goroutines %d, created %d, threads %d", after.Goroutines, after.GoroutinesCreated, after.Threads)
	}
	if sum := after.GoroutinesWaiting + after.GoroutinesRunnable + after.GoroutinesRunning + after.GoroutinesNotInGo; sum == 0 {
		t.Error("no goroutine is in any state")
	}
	if after.GCPauses == 0 || after.GCPauseSeconds <= 0 || math.IsInf(after.GCPauseMaxSeconds, 0) {
		t.Errorf("pauses %d, %v s, longest %v s", after.GCPauses, after.GCPauseSeconds, after.GCPauseMaxSeconds)
	}
}

func TestReaderProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		reader := memstats.NewReader(memstats.Options{})
		var s memstats.Sample
		if reader.Read(&s); len(s.Missing) < 2 {
			t.Errorf("missing %v, want the resident set and the open files", s.Missing)
		}
		return
	}
	reader := memstats.NewReader(memstats.Options{Limit: func() (uint64, bool) { return 1 << 30, true }})
	var s memstats.Sample
	reader.ReadProcess(&s)
	if s.ResidentBytes < 1<<20 || s.LimitBytes != 1<<30 {
		t.Errorf("resident %d, limit %d", s.ResidentBytes, s.LimitBytes)
	}
	before := s.OpenFDs
	for range 20 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	if reader.ReadProcess(&s); s.OpenFDs < before+20 {
		t.Errorf("open files: %d after %d and 20 more", s.OpenFDs, before)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if reader.ReadProcess(&s); s.ResidentBytes != 0 || s.OpenFDs != 0 {
		t.Errorf("after Close: resident %d, open files %d", s.ResidentBytes, s.OpenFDs)
	}
}

func TestReaderWithoutProc(t *testing.T) {
	reader := memstats.NewReader(memstats.Options{ProcDir: t.TempDir(), Limit: func() (uint64, bool) { return 5, false }})
	var s memstats.Sample
	reader.Read(&s)
	reader.ReadProcess(&s)
	if len(s.Missing) != 2 || s.ResidentBytes != 0 || s.OpenFDs != 0 || s.LimitBytes != 0 {
		t.Errorf("missing %v, resident %d, files %d, limit %d; want two missing and zeros", s.Missing, s.ResidentBytes, s.OpenFDs, s.LimitBytes)
	}
}

func TestReaderDoesNotAllocate(t *testing.T) {
	reader := memstats.NewReader(memstats.Options{})
	var s memstats.Sample
	for name, read := range map[string]func(*memstats.Sample){"Read": reader.Read, "ReadProcess": reader.ReadProcess} {
		read(&s)
		if allocs := testing.AllocsPerRun(100, func() { read(&s) }); allocs != 0 {
			t.Errorf("%s: %v allocations, want 0", name, allocs)
		}
	}
}

func TestSampleSub(t *testing.T) {
	reader := memstats.NewReader(memstats.Options{})
	var a, b memstats.Sample
	runtime.GC()
	reader.Read(&a)
	kept := make([]byte, 32<<20)
	reader.Read(&b)
	if d := b.Sub(&a); d.Cycles == 0 && (d.Aligned || d.HeapLiveBytes != 0) {
		t.Errorf("without a cycle between: %+v", d)
	}
	runtime.GC()
	reader.Read(&b)
	d := b.Sub(&a)
	if !d.Aligned || d.CyclesForced == 0 || d.HeapLiveBytes < 30<<20 || d.HeapLiveBytes > 40<<20 || d.HeapLivePerHour <= 0 {
		t.Errorf("after keeping 32 MiB: %+v", d)
	}
	if d.AllocBytesPerSecond <= 0 || d.GCPauses == 0 {
		t.Errorf("rates: %+v", d)
	}
	runtime.KeepAlive(kept)
	if d := a.Sub(&b); !d.Restarted || d.Cycles != 0 {
		t.Errorf("counters that go down: %+v, want Restarted", d)
	}
}
