package probes_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/probes"
)

// fakeProbe reads as it is told.
type fakeProbe struct {
	name  string
	read  func(ctx context.Context, dst []probes.Reading) []probes.Reading
	asked atomic.Int32
}

func (p *fakeProbe) Name() string { return p.name }

func (p *fakeProbe) Read(ctx context.Context, dst []probes.Reading) []probes.Reading {
	p.asked.Add(1)
	return p.read(ctx, dst)
}

func counting(name string, n float64) *fakeProbe {
	return &fakeProbe{name: name, read: func(_ context.Context, dst []probes.Reading) []probes.Reading {
		return append(dst, probes.Reading{Resource: name + "s", Count: n})
	}}
}

func TestNewSetChecksNames(t *testing.T) {
	for _, tt := range []struct {
		name  string
		list  []probes.Probe
		wants string
	}{
		{"nil", []probes.Probe{counting("a", 1), nil}, "probe 1: probes: bad set: the probe is nil"},
		{"empty", []probes.Probe{counting("", 1)}, `name ""`},
		{"upper", []probes.Probe{counting("Fds", 1)}, `name "Fds"`},
		{"dash", []probes.Probe{counting("open-files", 1)}, `name "open-files"`},
		{"twice", []probes.Probe{counting("a", 1), counting("a", 2)}, `two probes are named "a"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := probes.NewSet(0, tt.list...)
			if !errors.Is(err, probes.ErrSet) || !strings.Contains(err.Error(), tt.wants) {
				t.Errorf("NewSet gives error %v, want one with %q", err, tt.wants)
			}
		})
	}
}

func TestSetReads(t *testing.T) {
	set, err := probes.NewSet(0, counting("a", 1), counting("b", 2))
	if err != nil {
		t.Fatal(err)
	}
	got := set.Read(t.Context(), []probes.Reading{{Probe: "kept"}})
	want := []probes.Reading{{Probe: "kept"}, {Probe: "a", Resource: "as", Count: 1}, {Probe: "b", Resource: "bs", Count: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Read (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]probes.SetStats{{Probe: "a"}, {Probe: "b"}}, set.Stats()); diff != "" {
		t.Errorf("Stats (-want +got):\n%s", diff)
	}
}

// TestSetSurvivesItsProbes has one probe of each bad kind between two good ones.
func TestSetSurvivesItsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unblock := make(chan struct{})
		panics := &fakeProbe{name: "panics", read: func(context.Context, []probes.Reading) []probes.Reading {
			panic(strings.Repeat("bug ", 200))
		}}
		blocks := &fakeProbe{name: "blocks", read: func(_ context.Context, dst []probes.Reading) []probes.Reading {
			<-unblock
			return append(dst, probes.Reading{Resource: "too late"})
		}}
		slow := &fakeProbe{name: "slow", read: func(ctx context.Context, dst []probes.Reading) []probes.Reading {
			<-ctx.Done() // it keeps to its time, but is late all the same
			return append(dst, probes.Reading{Resource: "late"})
		}}
		set, err := probes.NewSet(time.Second, counting("first", 1), panics, blocks, slow, counting("last", 2))
		if err != nil {
			t.Fatal(err)
		}
		names := func(list []probes.Reading) (out []string) {
			for _, r := range list {
				out = append(out, r.Probe)
			}
			return out
		}
		for read, took := range []time.Duration{2 * time.Second, time.Second} {
			begun := time.Now()
			got := names(set.Read(t.Context(), nil))
			got = without(got, "slow") // its answer and its deadline come at once: either may win
			if diff := cmp.Diff([]string{"first", "last"}, got); diff != "" {
				t.Errorf("read %d: probes (-want +got):\n%s", read, diff)
			}
			if d := time.Since(begun); d != took {
				t.Errorf("read %d took %v, want %v", read, d, took)
			}
			synctest.Wait()
		}
		asked := map[string]int32{"panics": panics.asked.Load(), "blocks": blocks.asked.Load(), "slow": slow.asked.Load()}
		if diff := cmp.Diff(map[string]int32{"panics": 1, "blocks": 1, "slow": 2}, asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		close(unblock)
		synctest.Wait()
		got := names(set.Read(t.Context(), nil))
		if diff := cmp.Diff([]string{"first", "blocks", "last"}, without(got, "slow")); diff != "" {
			t.Errorf("after it came back: probes (-want +got):\n%s", diff)
		}
		stats := set.Stats()
		if st := stats[1]; !st.Off || st.Panics != 1 || len(st.Reason) != 256 || !strings.HasPrefix(st.Reason, "bug bug") {
			t.Errorf("the probe that panicked: %+v, want it off with its reason", st)
		}
		if st := stats[2]; st.Late != 2 || st.Off {
			t.Errorf("the probe that blocked: %+v, want late twice and on", st)
		}
		if stats[0].Late+stats[0].Panics+stats[4].Late+stats[4].Panics != 0 {
			t.Errorf("the good probes: %+v, %+v, want clean", stats[0], stats[4])
		}
	})
}

func without(list []string, name string) (out []string) {
	for _, s := range list {
		if s != name {
			out = append(out, s)
		}
	}
	return out
}

// TestSetGrows adds probes to a set in use and takes them out again.
func TestSetGrows(t *testing.T) {
	set, err := probes.NewSet(0, counting("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	read := func() string {
		var names []string
		for _, r := range set.Read(t.Context(), nil) {
			names = append(names, r.Probe)
		}
		return strings.Join(names, " ")
	}
	removeB, err := set.Add(counting("b", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = set.Add(counting("b", 1)); !errors.Is(err, probes.ErrSet) {
		t.Errorf("a second b: got error %v, want %v", err, probes.ErrSet)
	}
	if got := read(); got != "a b" {
		t.Errorf("read %q, want a b", got)
	}
	removeB()
	if _, err = set.Add(counting("b", 1)); err != nil {
		t.Errorf("b again: %v", err)
	}
	removeB() // of the first b alone
	if got := read(); got != "a b" || len(set.Stats()) != 2 {
		t.Errorf("read %q with %d stats, want a b and 2", got, len(set.Stats()))
	}
}
