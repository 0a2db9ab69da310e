package leakguard //nolint:testpackage // the sampler is inside

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

func testSampler(t *testing.T, o Options) *sampler {
	t.Helper()
	o.Registerer = prometheus.NewRegistry()
	g := New(o)
	if g.err != nil {
		t.Fatal(g.err)
	}
	set, err := probes.NewSet(0)
	if err != nil {
		t.Fatal(err)
	}
	s := newSampler(g, set)
	t.Cleanup(func() {
		if err := s.memory.Close(); err != nil {
			t.Error(err)
		}
	})
	s.begun = time.Now()
	return s
}

// TestHeapProfilesAreKeptWhenWanted lets the detector want heap profiles: they are handed in, and the newest is kept.
func TestHeapProfilesAreKeptWhenWanted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := testSampler(t, Options{CaptureDir: dir})
	s.detector.resources.heap.wanted = true
	ev := Evidence{At: time.Now()}
	s.heapProfiles(&ev)
	ev.At = ev.At.Add(time.Minute)
	s.heapProfiles(&ev)
	if len(ev.Heaps) != 2 || len(ev.Heaps[0].Sites) == 0 {
		t.Errorf("got %d heap profiles, want two with sites", len(ev.Heaps))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*heap.pb.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %v and %v, want the profile in CaptureDir", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := memstats.ReadHeap(data); err != nil {
		t.Errorf("the kept profile cannot be read: %v", err)
	}
}

// TestCaptureDirThatCannotBeWritten costs the capture, and is said once.
func TestCaptureDirThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := testSampler(t, Options{CaptureDir: file})
	s.capture("heap.pb.gz", []byte("x"))
	s.capture("heap.pb.gz", []byte("x"))
	if n := s.guard.notices; s.errors != 2 || len(n) != 1 || !strings.Contains(n[0], "captures cannot be written") {
		t.Errorf("got %d errors and notices %q, want two and one", s.errors, n)
	}
}

func TestHeapKeeperThinsOut(t *testing.T) {
	t.Parallel()
	o := Options{}
	o.setDefaults()
	k := heapKeeper{timing: newTiming(&o)}
	start := time.Unix(1_700_000_000, 0)
	for i := range 30 {
		if _, err := k.take(start.Add(time.Duration(i) * 5 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		if len(k.profiles) > maxHeaps {
			t.Fatalf("got %d profiles, want at most %d", len(k.profiles), maxHeaps)
		}
	}
	first, last := k.profiles[0].at, k.profiles[len(k.profiles)-1].at
	if !first.Equal(start) || !last.Equal(start.Add(29*5*time.Minute)) {
		t.Errorf("got profiles from %v to %v, want the first and the last of all", first, last)
	}
}

// TestPanicOfTheDetector must not end the host: it is counted, and the guard goes on reading the metrics.
func TestPanicOfTheDetector(t *testing.T) {
	t.Parallel()
	s := testSampler(t, Options{})
	s.detector.orphans = nil // the next step panics
	s.tick(t.Context())
	s.tick(t.Context())
	if r := s.guard.Report(); r.Sampling.Panics != 1 || !s.off {
		t.Errorf("got %d panics, switched off: %t; want one and off", r.Sampling.Panics, s.off)
	}
}

// TestStateOfManyGroups bounds what the detector keeps of 4,096 places that all grow.
func TestStateOfManyGroups(t *testing.T) {
	d := newDetector(&Options{Interval: DefaultInterval, Grace: DefaultGrace, Scale: 1})
	groups := make([]stackmatch.Group, maxGrowthPlaces)
	for i := range groups {
		groups[i] = stackmatch.Group{ID: uint64(i + 1), Stack: []frame.Frame{{Function: fmt.Sprintf("example.com/op.f%d", i)}}} //nolint:gosec // not negative
	}
	before := live()
	now := time.Unix(1_700_000_000, 0)
	for range 2 * maxLayers {
		for i := range groups {
			groups[i].Count++
		}
		d.growth.observe(&Evidence{At: now, Groups: groups})
		now = now.Add(20 * time.Second)
	}
	grown := live() - before
	t.Logf("%d places with %d layers each take %.1f MiB", len(d.growth.places), maxLayers, float64(grown)/(1<<20))
	if grown > 8<<20 {
		t.Errorf("the state of %d places takes %d bytes, want at most 8 MiB", maxGrowthPlaces, grown)
	}
	runtime.KeepAlive(d)
}

// live is the size of the live heap.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // a heap is smaller than that
}
