package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
)

// growing has a rule that only a slope of more than two goroutines a minute makes match.
const growing = `schema: 1
builtin: false
rules:
  - id: APP-1
    title: pushers come faster than they go
    severity: warning
    categories: [queue]
    doc: Push waits for a consumer that has gone.
    advice: Select on the context.
    verdict: suspect
    match:
      frames: [{exact: example.com/op/q.(*Q).push}]
    when: group.slopeKnown && group.slopePerMinute > 2.0
`

// TestSlope checks that conditions see how fast a group grows between dumps, when the distance of the dumps is known.
func TestSlope(t *testing.T) {
	rules := file(t, "rules.yaml", growing)
	few, many := file(t, "few.txt", stuck(5)), file(t, "many.txt", stuck(25))
	between := file(t, "between.txt", stuck(15))
	for _, tc := range []struct {
		name string
		args []string
		want int
	}{
		{"two a minute and more", []string{"-every", "5m", few, many}, 1},
		{"diff", []string{"diff", "-every", "4m", few, between, many}, 1},
		{"slower", []string{"-every", "10m", few, many}, 0},
		{"slower with three dumps", []string{"-every", "5m", few, between, many}, 0},
		{"falling", []string{"-every", "1m", many, few}, 0},
		{"distance unknown", []string{few, many}, 0},
		{"too close to tell", []string{"-every", "1s", few, many}, 0},
		{"one dump", []string{"-every", "1m", many}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := start(t, nil, append(tc.args, "-rules", rules)...)
			if got.status != tc.want || got.stderr != "" {
				t.Errorf("got status %d, want %d\n%s%s", got.status, tc.want, got.stdout, got.stderr)
			}
		})
	}
}

// TestEvery checks that the distance of dumps gives the growth per hour, and no times of the dumps, which it does not know.
func TestEvery(t *testing.T) {
	few, many := file(t, "few.txt", stuck(5)), file(t, "many.txt", stuck(25))
	got := start(t, nil, "-o", "json", "-every", "30m", few, many)
	if !strings.Contains(got.stdout, `"per_hour": 40,`) || strings.Contains(got.stdout, "first_seen") {
		t.Errorf("got %s%s\nwant 40 an hour and no times", got.stdout, got.stderr)
	}
	for _, bad := range []string{"0s", "-1m", "often"} {
		if got := start(t, nil, "-every", bad, few); got.status != 2 || !strings.Contains(got.stderr, "no time above zero") {
			t.Errorf("-every %s: got status %d, %q", bad, got.status, got.stderr)
		}
	}
}

// TestWatchSlope checks that watch gives conditions the slope over the times at which it took the dumps.
func TestWatchSlope(t *testing.T) {
	s := settings{rules: file(t, "rules.yaml", growing)}
	options, err := s.options()
	if err != nil {
		t.Fatal(err)
	}
	for perMinute, want := range map[int]stackmatch.Verdict{2: stackmatch.VerdictBenign, 3: stackmatch.VerdictSuspect} {
		w := watcher{}
		for i := range 4 {
			w.dumps = append(w.dumps, parse1(t, stuck(5+i*perMinute)))
			w.times = append(w.times, time.Unix(int64(60*i), 0))
		}
		r, err := w.report(options)
		if err != nil || r.Verdict != want {
			t.Errorf("%d a minute: got %v, error %v, want %s", perMinute, r, err, want)
		}
	}
}

// parse1 reads one dump.
func parse1(t *testing.T, text string) *stackmatch.Dump {
	t.Helper()
	dumps, err := stackmatch.ReadAll(strings.NewReader(text), stackmatch.ReadOptions{})
	if err != nil || len(dumps) != 1 {
		t.Fatalf("got %d dumps, error %v", len(dumps), err)
	}
	return dumps[0]
}

// TestRuleFileRemarks checks that a suppression that no longer holds and a condition that cannot be evaluated are told of
// while a rule file is used, once each, and that the findings stay.
func TestRuleFileRemarks(t *testing.T) {
	rules := file(t, "rules.yaml", `schema: 1
rules:
  - id: APP-1
    title: t
    severity: info
    categories: [c]
    doc: d
    advice: a
    verdict: suspect
    match: {frames: [{prefix: example.com/op/}]}
    when: group.labels["tenant"] == "x"
suppressions:
  - {rule: GOR-505, owner: team-a, reason: fixed soon, expires: 2001-12-31}
`)
	got := start(t, nil, "-rules", rules, file(t, "leak.txt", stuck(5)))
	if got.status != 1 || !strings.Contains(got.stdout, "GOR-505") {
		t.Errorf("got status %d\n%s\nwant the finding that an expired suppression does not silence", got.status, got.stdout)
	}
	want := fmt.Sprintf("stackmatch: %s:13: suppression of GOR-505 by team-a expired on 2002-01-01: fixed soon\n", rules)
	if rest, ok := strings.CutPrefix(got.stderr, want); !ok || strings.Count(rest, "\n") != 1 || !strings.Contains(rest, "rule APP-1: when: no such key: tenant") {
		t.Errorf("standard error: got\n%s\nwant\n%sand the condition's error", got.stderr, want)
	}
}
