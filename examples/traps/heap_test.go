package traps_test

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/leakguard/leakguard/examples/traps"
	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/memstats"
)

// watched runs a trap for 100 seconds of make-believe time, in the rhythm of the example operator at --scale=0.05, and shows the
// heap of this process to a detector. It gives the last findings, and all that ever were pending or firing.
func watched(t *testing.T, start traps.Start) (last, alarms []leakguard.Finding) {
	t.Helper()
	const scale = 0.05
	options := leakguard.Options{Scale: scale, MainModule: "github.com/leakguard/leakguard"}
	detector, err := leakguard.NewDetector(options)
	if err != nil {
		t.Fatal(err)
	}
	work, err := start(t.Context(), traps.Env{Scale: scale})
	if err != nil {
		t.Fatal(err)
	}
	reader := memstats.NewReader(memstats.Options{})
	defer func() { _ = reader.Close() }()
	var sample memstats.Sample
	var heaps []keptHeap
	wanted := false
	const ticks = 200 // of half a second
	for i := range ticks {
		now := time.Unix(1_700_000_000, 0).Add(time.Duration(i) * 500 * time.Millisecond)
		if i%2 == 0 || i%10 == 5 {
			object := traps.Object{Namespace: "default", Name: fmt.Sprintf("web-%d", i%8)}
			if err = work.Reconcile(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		if i%12 == 0 {
			runtime.GC()
		}
		if i%30 == 0 {
			heaps = append(heaps, keepHeap(t, now))
		}
		reader.Read(&sample)
		ev := leakguard.Evidence{At: now, Memory: sample}
		before := wanted
		if wanted = detector.NeedsHeaps(); wanted && (!before || i%5 == 0) { // to read them costs more than all the rest
			for _, h := range heaps {
				ev.Heaps = append(ev.Heaps, h.read(t))
			}
		}
		last = detector.Step(ev)
		for _, f := range last {
			if f.State == leakguard.StatePending || f.State == leakguard.StateFiring {
				alarms = append(alarms, f)
			}
		}
	}
	runtime.KeepAlive(work)
	return last, alarms
}

// keptHeap is a heap profile as the runtime writes it, which takes little of the heap that is watched.
type keptHeap struct {
	at   time.Time
	data []byte
}

func keepHeap(t *testing.T, at time.Time) keptHeap {
	t.Helper()
	var compressed bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&compressed, 0); err != nil {
		t.Fatal(err)
	}
	return keptHeap{at: at, data: compressed.Bytes()}
}

func (k keptHeap) read(t *testing.T) *memstats.Heap {
	t.Helper()
	heap, err := memstats.ReadHeap(k.data)
	if err != nil {
		t.Fatal(err)
	}
	heap.Time = k.at
	return heap
}

// What leaks a little is listed and what leaks much alarms, with the culprit that the trap declares; their twins are silent.
func TestHeapTrapsAsADetectorSeesThem(t *testing.T) {
	for _, trap := range traps.All() {
		if trap.Grows != traps.Heap || trap.Gap != "" || trap.Leaves == 0 && trap.Name != "heap-map" {
			continue // one of those that alarm is enough: some of them can never be freed again
		}
		t.Run(trap.Name, func(t *testing.T) {
			last, alarms := watched(t, trap.Leak)
			found := false
			for _, f := range last {
				t.Logf("%s: %s", f.String(), f.Reason)
				found = found || f.Culprit.Function == trap.Culprit.Function && f.Rule == "heap-growth"
			}
			if !found {
				t.Errorf("got %v, want a finding in %s", last, trap.Culprit.Function)
			}
			if alarm := trap.Expect == traps.ExpectAlarm; alarm != (len(alarms) > 0) {
				t.Errorf("got the alarms %v, want any: %t", alarms, alarm)
			}
		})
		t.Run(trap.Name+"-twin", func(t *testing.T) {
			if last, alarms := watched(t, trap.Twin); len(last)+len(alarms) > 0 {
				t.Errorf("got %v, want nothing", last)
			}
		})
	}
}
