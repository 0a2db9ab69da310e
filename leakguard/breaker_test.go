package leakguard //nolint:testpackage // a breaker's time runs in it

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/probes"
)

// newTestBreakers allows ten goroutines and pauses for five minutes.
func newTestBreakers() *breakers {
	return newBreakers(&Breaker{MaxLeaked: 10}, timing{scale: 1})
}

func firing(controller string, count int64, now time.Time) []Finding {
	return []Finding{{Controller: controller, Count: count, State: StateFiring, LastSeen: now}}
}

var twoScopes = []probes.ScopeStats{{Scope: "app"}, {Scope: "clean"}}

func TestBreakerPausesTriesAndCloses(t *testing.T) {
	t.Parallel()
	b, now := newTestBreakers(), time.Unix(1000, 0)
	step := func(count int64, orphans int, want string) {
		t.Helper()
		b.step(now, firing("app", count, now), map[string]int{"app": orphans}, twoScopes)
		if got := b.state("app"); got != want {
			t.Fatalf("at %v: got state %q, want %q", now.Sub(time.Unix(1000, 0)), got, want)
		}
	}
	step(10, 10, "") // the allowance
	step(11, 11, breakerOpen)
	if got := b.wait("app", now); got != DefaultBreakerPause {
		t.Errorf("got wait %v, want %v", got, DefaultBreakerPause)
	}
	if got := b.wait("clean", now); got != 0 {
		t.Errorf("the other controller: got wait %v, want none", got)
	}
	now = now.Add(DefaultBreakerPause)
	step(11, 11, breakerTrial)
	if got := b.wait("app", now); got != 0 {
		t.Errorf("on trial: got wait %v, want none", got)
	}
	now = now.Add(DefaultBreakerTrial)
	step(15, 15, breakerOpen) // it leaked again
	if got := b.wait("app", now); got != 2*DefaultBreakerPause {
		t.Errorf("the second pause: got %v, want %v", got, 2*DefaultBreakerPause)
	}
	now = now.Add(2 * DefaultBreakerPause)
	step(15, 15, breakerTrial)
	now = now.Add(DefaultBreakerTrial)
	step(15, 15, "") // it did not
	now = now.Add(10 * time.Second)
	step(15, 15, "") // the old leak is not held against it
	step(26, 26, breakerOpen)
}

func TestBreakerNeverPausesTheLastController(t *testing.T) {
	t.Parallel()
	b, now := newTestBreakers(), time.Unix(1000, 0)
	both := append(firing("app", 100, now), firing("clean", 100, now)...)
	b.step(now, both, map[string]int{"app": 100, "clean": 100}, twoScopes)
	if b.state("app") != breakerOpen || b.state("clean") != "" {
		t.Errorf("got app %q and clean %q, want the first paused and the second not", b.state("app"), b.state("clean"))
	}
	b = newTestBreakers()
	b.step(now, firing("app", 100, now), nil, twoScopes[:1])
	if got := b.state("app"); got != "" {
		t.Errorf("the only controller: got %q, want it left alone", got)
	}
}

func TestBreakerIsOffByDefault(t *testing.T) {
	t.Parallel()
	b, now := newBreakers(nil, timing{scale: 1}), time.Unix(1000, 0)
	if got := b.step(now, firing("app", 1e6, now), nil, twoScopes); len(got) > 0 || b.wait("app", now) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

func TestBadBreakers(t *testing.T) {
	t.Parallel()
	for field, b := range map[string]Breaker{
		"Breaker.MaxLeaked": {}, "Breaker.Pause": {MaxLeaked: 1, Pause: -1}, "Breaker.Trial": {MaxLeaked: 1, Trial: -1},
	} {
		if err := New(Options{Breaker: &b}).err; !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), field) {
			t.Errorf("got %v, want ErrOptions that names %s", err, field)
		}
	}
}
