package probes_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"github.com/leakguard/leakguard/probes"
)

// labelsOf gives the scope labels of all goroutines that have a function with this part in its name on their stack, as
// an outsider sees them: from the goroutine profile.
func labelsOf(t *testing.T, function string) (controllers, reconciles []string) {
	t.Helper()
	return labelsOfKey(t, function, probes.LabelController), labelsOfKey(t, function, probes.LabelReconcile)
}

// labelsOfKey is labelsOf for any label.
func labelsOfKey(t *testing.T, function, key string) (values []string) {
	t.Helper()
	var buf bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&buf, 0); err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Sample {
		if hasFunction(s, function) {
			for range s.Value[0] {
				values = append(values, strings.Join(s.Label[key], ","))
			}
		}
	}
	return values
}

func hasFunction(s *profile.Sample, part string) bool {
	for _, l := range s.Location {
		for _, line := range l.Line {
			if strings.Contains(line.Function.Name, part) {
				return true
			}
		}
	}
	return false
}

// park is the body of a goroutine that a test looks for by its name.
func park(started chan<- struct{}, release <-chan struct{}) {
	started <- struct{}{}
	<-release
}

// parkFrom starts such a goroutine and waits for it.
func parkFrom(release <-chan struct{}, wg *sync.WaitGroup) {
	started := make(chan struct{})
	wg.Go(func() { park(started, release) })
	<-started
}

func TestSpanLabelsWhatItStarts(t *testing.T) {
	for _, low := range []bool{false, true} {
		scopes := probes.NewScopes()
		scopes.SetLowCardinality(low)
		scope := scopes.Scope("app")
		release, wg := make(chan struct{}), &sync.WaitGroup{}

		ctx, span := scope.Begin(t.Context(), scope.Object("ns", "a"))
		parkFrom(release, wg)
		name, id, ok := probes.FromContext(ctx)
		span.End()
		controllers, reconciles := labelsOf(t, "probes_test.park")
		if diff := cmp.Diff([]string{"app"}, controllers); diff != "" {
			t.Errorf("low %v: controllers (-want +got):\n%s", low, diff)
		}
		if diff := cmp.Diff([]string{id.String()}, reconciles); diff != "" {
			t.Errorf("low %v: reconciles (-want +got):\n%s", low, diff)
		}
		if !ok || name != "app" {
			t.Errorf("low %v: FromContext gives scope %q, %v, want app, true", low, name, ok)
		}
		if !low && id.Object != scope.Object("ns", "a") {
			t.Errorf("FromContext gives object %d, want that of ns/a", id.Object)
		}
		close(release)
		wg.Wait()

		release = make(chan struct{})
		parkFrom(release, wg) // after the span
		if controllers, _ = labelsOf(t, "probes_test.park"); !cmp.Equal([]string{""}, controllers) {
			t.Errorf("low %v: after the span new goroutines are labelled %q", low, controllers)
		}
		close(release)
		wg.Wait()
	}
}

// TestSpanKeepsLabelsInside is what a user's own [pprof.Do] does to a span.
func TestSpanKeepsLabelsInside(t *testing.T) {
	for _, low := range []bool{false, true} {
		scopes := probes.NewScopes()
		scopes.SetLowCardinality(low)
		release, wg := make(chan struct{}), &sync.WaitGroup{}
		scopes.Scope("app").Do(t.Context(), func(ctx context.Context) {
			pprof.Do(ctx, pprof.Labels("tenant", "blue"), func(ctx context.Context) {
				if v, _ := pprof.Label(ctx, "tenant"); v != "blue" {
					t.Errorf("low %v: the user's own label is %q", low, v)
				}
				parkFrom(release, wg)
			})
			parkFrom(release, wg)
		})
		if controllers, _ := labelsOf(t, "probes_test.park"); !cmp.Equal([]string{"app", "app"}, controllers) {
			t.Errorf("low %v: controllers %q, want app twice", low, controllers)
		}
		close(release)
		wg.Wait()
	}
}

func TestSpanRestoresOuterLabels(t *testing.T) {
	for _, low := range []bool{false, true} {
		scopes := probes.NewScopes()
		scopes.SetLowCardinality(low)
		release, wg := make(chan struct{}), &sync.WaitGroup{}
		scopes.Scope("outer").Do(t.Context(), func(ctx context.Context) {
			scopes.Scope("inner").Do(ctx, func(context.Context) {})
			parkFrom(release, wg)
		})
		if controllers, _ := labelsOf(t, "probes_test.park"); !cmp.Equal([]string{"outer"}, controllers) {
			t.Errorf("low %v: controllers %q, want outer", low, controllers)
		}
		close(release)
		wg.Wait()
	}
}

func TestSpanEndsByPanic(t *testing.T) {
	for _, low := range []bool{false, true} {
		scopes := probes.NewScopes()
		scopes.SetLowCardinality(low)
		func() {
			defer func() { _ = recover() }()
			scopes.Scope("app").Do(t.Context(), func(context.Context) { panic("user's bug") })
		}()
		want := []probes.ScopeStats{{Scope: "app", Begun: 1, Ended: 1}}
		if diff := cmp.Diff(want, scopes.Stats(nil)); diff != "" {
			t.Errorf("low %v: (-want +got):\n%s", low, diff)
		}
	}
}

func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := probes.NewScopes()
		a, b := scopes.Scope("a"), scopes.Scope("b")
		if scopes.Scope("a") != a {
			t.Error("the second Scope of one name is another one")
		}
		begun := time.Now()
		_, s1 := b.Begin(t.Context(), 1)
		time.Sleep(time.Second)
		_, s2 := a.Begin(t.Context(), 2)
		_, s3 := a.Begin(t.Context(), 3)

		got := scopes.InFlight([]probes.Open{{Scope: "kept"}})
		if len(got) != 4 || got[0].Scope != "kept" {
			t.Fatalf("InFlight gives %v, want the caller's entry and three spans", got)
		}
		for i, want := range []probes.Open{{Scope: "b", ID: probes.SpanID{Object: 1}}, {Scope: "a", ID: probes.SpanID{Object: 2}}, {Scope: "a", ID: probes.SpanID{Object: 3}}} {
			if o := got[i+1]; o.Scope != want.Scope || o.ID.Object != want.ID.Object || o.ID.Seq == 0 {
				t.Errorf("span %d is %v, want scope %s and object %d", i, o, want.Scope, want.ID.Object)
			}
		}
		if age := got[2].Since.Sub(begun); age != time.Second || !got[1].Since.Equal(begun) {
			t.Errorf("spans since %v and %v later, want 0 s and 1 s", got[1].Since.Sub(begun), age)
		}

		id2 := got[2].ID
		if !scopes.IsOpen("a", id2) || scopes.IsOpen("b", id2) || scopes.IsOpen("none", id2) {
			t.Error("IsOpen is not true for the scope of the span alone")
		}
		s2.End()
		s2.End() // twice harms nobody
		_, s4 := a.Begin(t.Context(), 4)
		s2.End() // nor does it end the span that has the slot now
		if scopes.IsOpen("a", id2) {
			t.Error("an ended span is open")
		}
		if got = scopes.InFlight(nil); len(got) != 3 || got[2].ID.Object != 4 {
			t.Errorf("InFlight gives %v, want objects 1, 3, 4", got)
		}
		s1.End()
		s3.End()
		s4.End()
		want := []probes.ScopeStats{{Scope: "a", Begun: 3, Ended: 3}, {Scope: "b", Begun: 1, Ended: 1}}
		if diff := cmp.Diff(want, scopes.Stats(nil)); diff != "" {
			t.Errorf("Stats (-want +got):\n%s", diff)
		}
		probes.Span{}.End()
	})
}

func TestLowCardinality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := probes.NewScopes()
		scopes.SetLowCardinality(true)
		app := scopes.Scope("app")
		idOf := func(ctx context.Context) probes.SpanID {
			_, id, _ := probes.FromContext(ctx)
			return id
		}
		ctx1, s1 := app.Begin(t.Context(), 1)
		ctx2, s2 := app.Begin(t.Context(), 2)
		first := idOf(ctx1)
		if first != idOf(ctx2) || first.Object != 0 {
			t.Fatalf("two spans at once are %v and %v, want one epoch without an object", first, idOf(ctx2))
		}
		s1.End()
		if n := len(scopes.InFlight(nil)); n != 1 {
			t.Fatalf("%d epochs in flight, want 1", n)
		}
		time.Sleep(2 * time.Second)
		if n := len(scopes.InFlight(nil)); n != 1 { // closes the epoch to new spans
			t.Errorf("%d epochs in flight, want the one with an open span", n)
		}
		ctx3, s3 := app.Begin(t.Context(), 3)
		if idOf(ctx3) == first {
			t.Error("a span begun two seconds later is of the same epoch")
		}
		if !scopes.IsOpen("app", first) || !scopes.IsOpen("app", idOf(ctx3)) {
			t.Error("an epoch with an open span is not open")
		}
		s2.End()
		if scopes.IsOpen("app", first) {
			t.Error("the first epoch is open after its last span")
		}
		s3.End()
		if !scopes.IsOpen("app", idOf(ctx3)) {
			t.Error("an epoch that takes in spans is not open")
		}
		time.Sleep(2 * time.Second)
		if got := scopes.InFlight(nil); len(got) != 0 {
			t.Errorf("in flight: %v, want nothing", got)
		}
		want := []probes.ScopeStats{{Scope: "app", Begun: 3, Ended: 3}}
		if diff := cmp.Diff(want, scopes.Stats(nil)); diff != "" {
			t.Errorf("Stats (-want +got):\n%s", diff)
		}
	})
}

// TestScopeConcurrently begins and ends spans in both modes while others read, and counts them at the end.
func TestScopeConcurrently(t *testing.T) {
	for _, low := range []bool{false, true} {
		scopes := probes.NewScopes()
		scopes.SetLowCardinality(low)
		const workers, each = 8, 500
		var wg sync.WaitGroup
		stop := make(chan struct{})
		var reader sync.WaitGroup
		reader.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, st := range scopes.Stats(nil) {
					if st.Ended > st.Begun {
						t.Errorf("low %v: %d ended of %d", low, st.Ended, st.Begun)
						return
					}
				}
				if n := len(scopes.InFlight(nil)); n > 2*workers {
					t.Errorf("low %v: %d in flight with %d workers", low, n, workers)
					return
				}
			}
		})
		for range workers {
			wg.Go(func() {
				for range each {
					scopes.Scope("app").Do(t.Context(), func(context.Context) {})
				}
			})
		}
		wg.Wait()
		close(stop)
		reader.Wait()
		want := []probes.ScopeStats{{Scope: "app", Begun: workers * each, Ended: workers * each}}
		if diff := cmp.Diff(want, scopes.Stats(nil)); diff != "" {
			t.Errorf("low %v: Stats (-want +got):\n%s", low, diff)
		}
	}
}

func TestScopeAllocations(t *testing.T) {
	for _, tt := range []struct {
		low  bool
		want float64
	}{{false, 5}, {true, 1}} {
		scopes := probes.NewScopes()
		scopes.SetLowCardinality(tt.low)
		scope, ctx := scopes.Scope("app"), t.Context()
		got := testing.AllocsPerRun(1000, func() {
			_, span := scope.Begin(ctx, scope.Object("ns", "name"))
			span.End()
		})
		if got > tt.want {
			t.Errorf("low %v: %v allocations for a span, want at most %v", tt.low, got, tt.want)
		}
	}
}

func TestObject(t *testing.T) {
	s, other := probes.NewScopes(), probes.NewScopes()
	first, again := s.Object("a", "b"), s.Object("a", "b")
	if first != again || s.Object("a", "b") == s.Object("a", "c") || s.Object("a", "b") == s.Object("b", "a") {
		t.Error("Object does not tell names apart")
	}
	if s.Object("a", "b") == other.Object("a", "b") {
		t.Error("two sets share a seed")
	}
	type request struct{ tenant int }
	one, same := probes.HashObject(s, request{1}), probes.HashObject(s, request{1})
	if one != same || probes.HashObject(s, request{1}) == probes.HashObject(s, request{2}) {
		t.Error("HashObject does not tell requests apart")
	}
}

func TestFromContextOfNoSpan(t *testing.T) {
	for _, ctx := range []context.Context{
		t.Context(),
		pprof.WithLabels(t.Context(), pprof.Labels(probes.LabelReconcile, "not ours")),
	} {
		if scope, id, ok := probes.FromContext(ctx); ok || scope != "" || id != (probes.SpanID{}) {
			t.Errorf("FromContext gives %q, %v, %v, want nothing", scope, id, ok)
		}
	}
}
