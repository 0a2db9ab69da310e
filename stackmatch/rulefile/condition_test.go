package rulefile_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

// withCondition is a file with one rule that has nothing but a condition.
func withCondition(when string) string {
	return fmt.Sprintf(`schema: 1
builtin: false
rules:
  - {id: APP-1, title: t, severity: info, categories: [c], doc: d, advice: a, verdict: suspect, when: %q}
`, when)
}

func TestCondition(t *testing.T) {
	slope := func(*stackmatch.Group, *stackmatch.Context) (float64, bool) { return 2.5, true }
	for _, tc := range []struct {
		when string
		want bool
	}{
		{`group.count == 12`, true},
		{`group.count > 12`, false},
		{`group.count > 11.5`, true},
		{`group.leaked == 2`, true},
		{`group.wait >= duration("20m")`, true},
		{`group.wait > duration("20m")`, false},
		{`group.medianWait == duration("600s")`, true},
		{`group.waitReason == "chan receive"`, true},
		{`group.waitReason in ["select", "chan receive"]`, true},
		{`size(group.frames) == 2 && group.frames[0].endsWith(".reply")`, true},
		{`group.frames.exists(f, f.matches("^example\\.com/.*run$"))`, true},
		{`group.frames.all(f, f.startsWith("net/http."))`, false},
		{`group.createdBy == "example.com/app/upload.Start"`, true},
		{`group.root == "example.com/app/upload.(*Worker).run"`, true},
		{`group.culprit.contains("upload") && group.origin == "main"`, true},
		{`group.labels["tenant"] == "blue"`, true},
		{`"tenant" in group.labels && !("user" in group.labels)`, true},
		{`group.controller == "bucket"`, true},
		{`group.slopeKnown && group.slopePerMinute > 2`, true},
		{`group.slopePerMinute > group.count`, false},
		{`group.grown`, false},
		{`[group].all(g, g.count == 12 && g.slopePerMinute == 2.5 && size(g.frames) == 2 && size(g.labels) == 2)`, true},
	} {
		t.Run(tc.when, func(t *testing.T) {
			var failure error
			set := parseWith(t, withCondition(tc.when), rulefile.Options{
				Slope: slope, Failed: func(_ string, err error) { failure = err },
			})
			if _, got := set.Match(worker(), nil); got != tc.want || failure != nil {
				t.Errorf("got %v, error %v, want %v", got, failure, tc.want)
			}
		})
	}
}

// TestConditionGrown checks that a condition sees the growth between dumps.
func TestConditionGrown(t *testing.T) {
	set := parse(t, withCondition("group.grown"))
	before, now := worker(), worker()
	before.Count = 4
	in := stackmatch.NewContext([]stackmatch.Group{*now}, stackmatch.ContextOptions{Earlier: [][]stackmatch.Group{{*before}}})
	if _, ok := set.Match(now, in); !ok {
		t.Error("the group has grown from 4 to 12 and the condition does not say so")
	}
	in = stackmatch.NewContext([]stackmatch.Group{*now}, stackmatch.ContextOptions{Earlier: [][]stackmatch.Group{{*now}}})
	if _, ok := set.Match(now, in); ok {
		t.Error("the group has not grown and the condition says so")
	}
}

// TestConditionSlopeBetweenDumps checks that without Options.Slope the slope is that between the dumps of the context.
func TestConditionSlopeBetweenDumps(t *testing.T) {
	set := parse(t, withCondition("group.slopeKnown && group.slopePerMinute > 3.9 && group.slopePerMinute < 4.1"))
	before, now := worker(), worker()
	before.Count = 4
	start := time.Unix(1_800_000_000, 0)
	for _, tc := range []struct {
		name  string
		times []time.Time
		want  bool
	}{
		{"two minutes", []time.Time{start, start.Add(2 * time.Minute)}, true},
		{"four minutes", []time.Time{start, start.Add(4 * time.Minute)}, false},
		{"unknown", nil, false},
		{"too few times", []time.Time{start}, false},
		{"half a minute at least", []time.Time{start, start.Add(29 * time.Second)}, false},
	} {
		in := stackmatch.NewContext([]stackmatch.Group{*now}, stackmatch.ContextOptions{Earlier: [][]stackmatch.Group{{*before}}, Times: tc.times})
		if _, got := set.Match(now, in); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
	if _, ok := set.Match(now, nil); ok {
		t.Error("the slope is known without a context")
	}
}

// TestConditionFails checks that an evaluation that fails does not match and is told of.
func TestConditionFails(t *testing.T) {
	deep := worker()
	for range 126 {
		deep.Stack = append(deep.Stack, frame.Frame{Function: strings.Repeat("a/", 400) + "p.f"})
	}
	for _, tc := range []struct{ name, when, want string }{
		{"label", `group.labels["user"] == "x"`, "no such key: user"},
		{"index", `group.frames[500] == "x"`, "index out of bounds: 500"},
		{"division", `100 / (group.count - 12) > 1`, "division by zero"},
		{"cost", `group.frames.exists(f, f.matches("^(a|b|c|d|e|f|g|h|i|j|k|l|m)+x$"))`, "actual cost limit exceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var rule string
			var failure error
			set := parseWith(t, withCondition(tc.when), rulefile.Options{
				Failed: func(id string, err error) { rule, failure = id, err },
			})
			if _, ok := set.Match(deep, nil); ok {
				t.Error("the rule matches")
			}
			if rule != "APP-1" || failure == nil || !strings.Contains(failure.Error(), tc.want) {
				t.Errorf("got rule %q, error %v, want %q", rule, failure, tc.want)
			}
		})
	}
}

// TestHostileConditions checks that a condition that could cost too much is refused when the file is read.
func TestHostileConditions(t *testing.T) {
	for _, when := range []string{
		`group.frames.all(a, group.frames.all(b, group.frames.all(c, a + b != c)))`,
		`group.frames.exists(a, group.frames.exists(b, a == b + "x"))`,
		`group.frames.all(f, f.matches(f))`,
		`group.frames.map(a, group.frames.map(b, a + b)).size() > 1`,
		`group.labels.all(k, group.labels.all(l, group.frames.all(f, k + l != f)))`,
		`["ab"].map(a, a + a).map(a, a + a).map(a, a + a).all(a, group.frames.all(f, group.frames.all(g, a != f + g)))`,
	} {
		_, err := rulefile.Parse("rules.yaml", []byte(withCondition(when)))
		if !errors.Is(err, rulefile.ErrInvalid) || !strings.Contains(err.Error(), "rule APP-1: when: may cost") {
			t.Errorf("%s: got %v, want that it may cost too much", when, err)
		}
	}
}

// TestConditionConcurrently checks that one set can be asked by many.
func TestConditionConcurrently(t *testing.T) {
	slopes := new(rulefile.Slopes)
	set := parseWith(t, withCondition(`group.count == 12 && group.slopePerMinute < 1.0`), rulefile.Options{Slope: slopes.PerMinute})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				slopes.Observe(time.Now(), []stackmatch.Group{*worker()})
				if _, ok := set.Match(worker(), nil); !ok {
					t.Error("no match")
				}
			}
		})
	}
	wg.Wait()
}

func TestSlopes(t *testing.T) {
	start := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	count := func(n int) []stackmatch.Group { return []stackmatch.Group{{ID: 1, Count: n}} }
	for _, tc := range []struct {
		name  string
		every time.Duration
		n     int
		count func(i int) int
		low   float64
		high  float64
		known bool
	}{
		{"two counts", time.Minute, 2, func(i int) int { return i }, 0, 0, false},
		{"too short", 5 * time.Second, 4, func(i int) int { return i }, 0, 0, false},
		{"one a second", 10 * time.Second, 30, func(i int) int { return 10 * i }, 59.9, 60.1, true},
		{"one a second, looked at often", time.Second, 120, func(i int) int { return i }, 59.9, 60.1, true},
		{"flat", 10 * time.Second, 100, func(int) int { return 500 }, -0.001, 0.001, true},
		{"falls", time.Minute, 8, func(i int) int { return 100 - 2*i }, -2.01, -1.99, true},
		{"was flat, grows for ten minutes", 30 * time.Second, 100, func(i int) int { return max(0, i-60) }, 1.99, 2.01, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s rulefile.Slopes
			for i := range tc.n {
				s.Observe(start.Add(time.Duration(i)*tc.every), count(tc.count(i)))
			}
			got, known := s.PerMinute(&count(0)[0], nil)
			if known != tc.known || got < tc.low || got > tc.high {
				t.Errorf("got %v, %v, want %v to %v, %v", got, known, tc.low, tc.high, tc.known)
			}
		})
	}
}

// TestSlopesBound checks that groups beyond the bound are not known until old ones are forgotten.
func TestSlopesBound(t *testing.T) {
	var s rulefile.Slopes
	start := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	many := make([]stackmatch.Group, 5000)
	for i := range many {
		many[i] = stackmatch.Group{ID: uint64(i), Count: 1}
	}
	last := &many[len(many)-1]
	for i := range 4 {
		s.Observe(start.Add(time.Duration(i)*time.Minute), many)
	}
	if _, known := s.PerMinute(&many[0], nil); !known {
		t.Error("the first group is not known")
	}
	if _, known := s.PerMinute(last, nil); known {
		t.Error("a group beyond the bound is known")
	}
	for i := range 4 {
		s.Observe(start.Add(time.Hour+time.Duration(i)*time.Minute), []stackmatch.Group{*last})
	}
	if _, known := s.PerMinute(last, nil); !known {
		t.Error("the old groups are not forgotten")
	}
}
