package traps_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"go.uber.org/goleak"

	"github.com/leakguard/leakguard/examples/traps"
)

// The leaking halves leave goroutines behind by design, so the package has no goleak in TestMain; each twin is checked by
// itself.

func TestMain(m *testing.M) {
	if how := os.Getenv(dieEnv); how != "" {
		die(how)
		return
	}
	runtime.MemProfileRate = 4 << 10 // some of the traps leave little behind
	os.Exit(m.Run())
}

func TestRegistryIsComplete(t *testing.T) {
	t.Parallel()
	names := map[string]bool{"none": true} // what the operator calls no trap
	name := regexp.MustCompile(`^[a-z][a-z0-9-]+$`)
	for _, trap := range traps.All() {
		if names[trap.Name] || !name.MatchString(trap.Name) {
			t.Errorf("%q: the name is taken or not in lower case", trap.Name)
		}
		names[trap.Name] = true
		silent := trap.Expect == traps.ExpectSilent
		switch {
		case trap.Title == "" || trap.Leak == nil:
			t.Errorf("%s: title or leak is missing", trap.Name)
		case silent != (trap.Twin == nil):
			t.Errorf("%s: a trap has a twin, what is no leak has none", trap.Name)
		case !silent && trap.Grows == "" && trap.Expect != traps.ExpectNotice:
			t.Errorf("%s: what grows is missing", trap.Name)
		case silent != (trap.Culprit == traps.Site{}) || silent && trap.Controller != "":
			t.Errorf("%s: a trap has a culprit, what is no leak has none", trap.Name)
		case !silent && trap.Row == "":
			t.Errorf("%s: the row is missing", trap.Name)
		case trap.Configure != nil && trap.Alone == "":
			t.Errorf("%s: it configures the manager, which no other trap of the process may notice", trap.Name)
		}
		found, err := traps.Find(trap.Name)
		if err != nil || found.Title != trap.Title {
			t.Errorf("Find(%q): got %v, %v", trap.Name, found.Title, err)
		}
	}
	if _, err := traps.Find("none"); !errors.Is(err, traps.ErrUnknown) {
		t.Errorf("Find(none): got %v, want ErrUnknown", err)
	}
}

// Each trap is in one batch, and no batch holds two that are in each other's way.
// TestRuns runs each trap that is chosen once, and each twin, with more twins in one process.
func TestRuns(t *testing.T) {
	t.Parallel()
	const size = 5
	alarms := func(t *traps.Trap) bool { return t.Expect == traps.ExpectAlarm }
	want := 0
	for _, trap := range traps.All() {
		if trap.Gap == "" && alarms(&trap) {
			want++
		}
	}
	for _, twins := range []bool{false, true} {
		seen := map[string]bool{}
		for _, run := range traps.Runs(twins, size, alarms) {
			names := strings.Split(run, ",")
			if limit := map[bool]int{false: size, true: 2 * size}[twins]; len(names) > limit {
				t.Errorf("twins %t: %d in one process, want %d at most", twins, len(names), limit)
			}
			for _, name := range names {
				if trap, err := traps.Find(name); err != nil || !alarms(&trap) || seen[name] {
					t.Errorf("twins %t: %q is unknown, not chosen, or there twice (%v)", twins, name, err)
				}
				seen[name] = true
			}
		}
		if len(seen) != want {
			t.Errorf("twins %t: %d traps, want %d", twins, len(seen), want)
		}
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	const size = 9
	seen := map[string]int{}
	for _, batch := range traps.Batches(traps.All(), size) {
		if len(batch) > size {
			t.Errorf("got a batch of %d traps, want at most %d", len(batch), size)
		}
		for i := range batch {
			seen[batch[i].Name]++
			for j := range batch[:i] {
				if why := batch[i].Conflict(&batch[j]); why != "" {
					t.Errorf("%s and %s are in one batch, but %s", batch[i].Name, batch[j].Name, why)
				}
				if (batch[i].Grows == traps.Heap) != (batch[j].Grows == traps.Heap) {
					t.Errorf("%s and %s are in one batch, but only one of them is about memory", batch[i].Name, batch[j].Name)
				}
			}
		}
	}
	for _, trap := range traps.All() {
		if seen[trap.Name] != 1 {
			t.Errorf("%s is in %d batches, want one", trap.Name, seen[trap.Name])
		}
	}
}

func TestConflict(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b     string
		conflict bool
	}{
		{"chan-send", "watch-idle", false},
		{"watch-idle", "watch-http1", false}, // the same culprit in another controller
		{"finalizer-cycle", "cleanup-holds-itself", true},
		{"chan-send", "blocked-finalizer", true},
		{"rest-timeout", "chan-send", true},
		{"dropped-tick", "dropped-ticker", false},
		{"client-per-reconcile", "tls-per-reconcile", true}, // one call site, and one type of reconciler
	} {
		a, errA := traps.Find(test.a)
		b, errB := traps.Find(test.b)
		if got := a.Conflict(&b); errA != nil || errB != nil || (got != "") != test.conflict {
			t.Errorf("%s and %s: got %q (%v, %v), want a conflict: %t", test.a, test.b, got, errA, errB, test.conflict)
		}
	}
}

// run does the work of a trap once, as the operator would.
func run(t *testing.T, start traps.Start) (stop func()) {
	t.Helper()
	life, end := context.WithCancel(t.Context())
	work, err := start(life, traps.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if work.Reconcile != nil {
		if err = work.Reconcile(t.Context(), traps.Object{Namespace: "default", Name: "web"}); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() {
		if work.Run == nil {
			done <- nil
			return
		}
		done <- work.Run(life)
	}()
	return func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A finding is compared with the culprit that a trap declares, so that must be where its goroutine really is.
func TestCulpritsAreInTheStacks(t *testing.T) {
	for _, trap := range traps.All() {
		if trap.Grows != traps.Goroutines || trap.Culprit.File == "" || trap.NeedsAPI {
			continue
		}
		t.Run(trap.Name, func(t *testing.T) {
			stop := run(t, trap.Leak)
			defer stop()
			want := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(trap.Culprit.Function) + `\(.*\n\t` + regexp.QuoteMeta(trap.Culprit.File) + `:`)
			var dump bytes.Buffer
			// The goroutine has to get there, and one of the traps starts its first after a second.
			for range 100 {
				dump.Reset()
				runtime.GC() // one of the traps is a finalizer
				if err := pprof.Lookup("goroutine").WriteTo(&dump, 2); err != nil {
					t.Fatal(err)
				}
				if want.Match(dump.Bytes()) {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
			t.Errorf("no goroutine in %s (%s):\n%s", trap.Culprit.Function, trap.Culprit.File, dump.Bytes())
		})
	}
}

// inUse gives the bytes that a function and what it calls have allocated and that are alive.
func inUse(t *testing.T, function string) int64 {
	t.Helper()
	for range 3 { // a profile knows of allocations that two collections have seen
		runtime.GC()
	}
	var compressed bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&compressed, 0); err != nil {
		t.Fatal(err)
	}
	heap, err := profile.Parse(&compressed)
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, sample := range heap.Sample {
		if hasFunction(sample, function) {
			total += sample.Value[len(sample.Value)-1]
		}
	}
	return total
}

func hasFunction(sample *profile.Sample, function string) bool {
	for _, location := range sample.Location {
		for _, line := range location.Line {
			if line.Function.Name == function {
				return true
			}
		}
	}
	return false
}

// What leaks memory must keep what its culprit allocates, and its twin must not.
func TestCulpritsAreInTheHeap(t *testing.T) {
	const rollouts = 16
	grown := func(start traps.Start, function string) int64 {
		life, end := context.WithCancel(t.Context())
		defer end()
		work, err := start(life, traps.Env{Scale: 0.05})
		if err != nil {
			t.Fatal(err)
		}
		reconcile := func() {
			if err := work.Reconcile(t.Context(), traps.Object{Namespace: "default", Name: "web"}); err != nil {
				t.Fatal(err)
			}
		}
		reconcile()
		before := inUse(t, function)
		for range rollouts {
			reconcile()
		}
		after := inUse(t, function)
		runtime.KeepAlive(work)
		return after - before
	}
	for _, trap := range traps.All() {
		if trap.Grows != traps.Heap {
			continue
		}
		t.Run(trap.Name, func(t *testing.T) {
			want := int64(rollouts * 256 << 10)
			if trap.Leaves > 0 {
				want = rollouts * trap.Leaves
			}
			if got := grown(trap.Leak, trap.Culprit.Function); got < want {
				t.Errorf("%d rollouts left %d bytes behind, want %d or more", rollouts, got, want)
			}
			if trap.Twin == nil {
				return
			}
			if got := grown(trap.Twin, trap.Culprit.Function); got > want/4 {
				t.Errorf("the twin left %d bytes behind after %d rollouts, want less than %d", got, rollouts, want/4)
			}
		})
	}
}

func TestTwinsLeaveNothingBehind(t *testing.T) {
	for _, trap := range traps.All() {
		if trap.Twin == nil || trap.NeedsAPI { // the operator's tests run those
			continue
		}
		t.Run(trap.Name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			run(t, trap.Twin)()
			if err := goleak.Find(before); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWorkerPerObjectEndsWithItsObject(t *testing.T) {
	trap, err := traps.Find("worker-per-object")
	if err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	work, err := trap.Leak(t.Context(), traps.Env{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []traps.Object{{Name: "a"}, {Name: "a"}, {Name: "b"}, {Name: "a", Deleted: true}, {Name: "b", Deleted: true}, {Name: "b", Deleted: true}} {
		if err = work.Reconcile(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err = goleak.Find(before); err != nil {
		t.Error(err)
	}
}
