package leakguard //nolint:testpackage // a breaker's time runs in it

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// breakerDay is where the time of a test of breakers begins.
var breakerDay = time.Unix(1_700_000_000, 0)

// newTestBreakers allows ten leaked, pauses for five minutes and tries for one, and knows the controllers.
func newTestBreakers(controllers ...string) *breakers {
	b := newBreakers(&Breaker{MaxLeaked: 10}, timing{scale: 1})
	for _, name := range controllers {
		b.wait(name, breakerDay)
	}
	return b
}

// leaked gives a firing finding for each controller that has leaked, ordered as the detector's.
func leaked(now time.Time, counts map[string]int64) leaks {
	var findings []Finding
	for name, n := range counts {
		if n > 0 {
			findings = append(findings, Finding{Fingerprint: name, Controller: name, Count: n, State: StateFiring, LastSeen: now})
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Controller, b.Controller))
	})
	return leaks{now, findings, func(f *Finding) int64 { return f.Count }}
}

// took gives the changes of one step: "app open".
func took(b *breakers, now time.Time, counts map[string]int64) (changes []string) {
	for _, c := range b.step(leaked(now, counts)) {
		changes = append(changes, c.controller+" "+c.state)
	}
	return changes
}

func TestBreakerPausesTriesAndCloses(t *testing.T) {
	t.Parallel()
	b, now := newTestBreakers("app", "works"), breakerDay
	step := func(count int64, want string) {
		t.Helper()
		took(b, now, map[string]int64{"app": count})
		if got := b.state("app"); got != want {
			t.Fatalf("at %v: got state %q, want %q", now.Sub(breakerDay), got, want)
		}
	}
	step(10, "") // the allowance
	step(11, breakerOpen)
	if got := b.wait("app", now); got != DefaultBreakerPause {
		t.Errorf("got wait %v, want %v", got, DefaultBreakerPause)
	}
	if got := b.wait("works", now); got != 0 {
		t.Errorf("the other controller: got wait %v, want none", got)
	}
	now = now.Add(DefaultBreakerPause)
	if got := b.wait("app", now); got != 0 {
		t.Errorf("after the pause and before a sample: got wait %v, want none", got)
	}
	step(11, breakerTrial)
	if got := b.wait("app", now); got != 0 {
		t.Errorf("on trial: got wait %v, want none", got)
	}
	now = now.Add(DefaultBreakerTrial)
	step(15, breakerOpen) // it leaked again
	if got := b.wait("app", now); got != 2*DefaultBreakerPause {
		t.Errorf("the second pause: got %v, want %v", got, 2*DefaultBreakerPause)
	}
	now = now.Add(2 * DefaultBreakerPause)
	step(15, breakerTrial)
	now = now.Add(DefaultBreakerTrial)
	step(15, "") // it did not
	for range 100 {
		now = now.Add(10 * time.Second)
		step(15, "") // the old leak is not held against it
	}
	step(25, "")
	step(9, "") // some of it is gone, and is not allowed again
	now = now.Add(time.Hour)
	step(19, "")
	step(20, breakerOpen)
	if got := b.wait("app", now); got != DefaultBreakerPause {
		t.Errorf("long after: got a pause of %v, want %v", got, DefaultBreakerPause)
	}
}

func TestBreakerPausesGrowToABound(t *testing.T) {
	t.Parallel()
	b, now, count := newTestBreakers("app", "works"), breakerDay, int64(11)
	var got []time.Duration
	for range 7 {
		took(b, now, map[string]int64{"app": count})
		pause := b.wait("app", now)
		got = append(got, pause/DefaultBreakerPause)
		now = now.Add(pause)
		took(b, now, map[string]int64{"app": count})
		now, count = now.Add(DefaultBreakerTrial), count+1
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 16, 16}; !slices.Equal(got, want) {
		t.Errorf("got pauses of %d times the first, want %d", got, want)
	}
}

// TestBreakerOfAnEstimate has hundreds leaked, whose number is an estimate: a percent more is no growth, two are.
func TestBreakerOfAnEstimate(t *testing.T) {
	t.Parallel()
	for more, want := range map[int64]string{20: breakerClosed, 40: breakerOpen} {
		b, now := newTestBreakers("app", "works"), breakerDay
		for _, count := range []int64{2000, 2000, 2000 + more} {
			took(b, now, map[string]int64{"app": count})
			now = now.Add(DefaultBreakerPause)
		}
		if got := b.state("app"); got != want {
			t.Errorf("%d more of 2000: got state %q, want %q", more, got, want)
		}
	}
}

// TestBreakerLeavesOneControllerRunning has three that leak at once, and then on and on: at no time are all paused.
func TestBreakerLeavesOneControllerRunning(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	b, now := newTestBreakers(names...), breakerDay
	counts := map[string]int64{"a": 100, "b": 300, "c": 200}
	if got, want := took(b, now, counts), []string{"b open", "c open", "a kept"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q: the one that leaks least goes on", got, want)
	}
	paused := map[string]bool{}
	for range 6 * 60 * 24 {
		now = now.Add(10 * time.Second)
		running := 0
		for _, name := range names {
			if b.wait(name, now) == 0 {
				running++
				counts[name] += 2 // 1 % is no growth
			}
		}
		took(b, now, counts)
		running = 0
		for _, name := range names {
			if b.state(name) == breakerOpen {
				paused[name] = true
			} else {
				running++
			}
		}
		if running == 0 {
			t.Fatalf("after %v all controllers are paused", now.Sub(breakerDay))
		}
	}
	if len(paused) != 3 {
		t.Errorf("got only %v ever paused: the test shows little", paused)
	}
}

// TestBreakerTrialFailsWhileOthersArePaused keeps the controller on trial, says so once, and pauses it when another one runs.
func TestBreakerTrialFailsWhileOthersArePaused(t *testing.T) {
	t.Parallel()
	b, now := newTestBreakers("a", "b"), breakerDay
	counts := map[string]int64{"a": 20}
	want := func(changes ...string) {
		t.Helper()
		if got := took(b, now, counts); !slices.Equal(got, changes) {
			t.Fatalf("at %v: got %q, want %q", now.Sub(breakerDay), got, changes)
		}
	}
	want("a open")
	now = now.Add(DefaultBreakerPause)
	want("a trial")
	counts["b"] = 20
	want("b open") // a runs
	now, counts["a"] = now.Add(DefaultBreakerTrial), 40
	want("a kept")
	if b.wait("a", now) != 0 || b.state("a") != breakerTrial {
		t.Errorf("got the last controller %q, want it on trial", b.state("a"))
	}
	if c := b.condition(); !c.paused || !strings.Contains(c.message, "controller a leaks and is not paused") {
		t.Errorf("got the condition %+v, want b paused and a not although it leaks", c)
	}
	now, counts["a"] = now.Add(DefaultBreakerTrial), 60
	want()
	now, counts["a"] = now.Add(DefaultBreakerPause), 80
	want("b trial", "a open")
	if got := b.wait("a", now); got != 2*DefaultBreakerPause {
		t.Errorf("got a pause of %v, want %v", got, 2*DefaultBreakerPause)
	}
}

// TestBreakerOfTheOnlyController never opens, whatever else leaks or has a scope, and says so once.
func TestBreakerOfTheOnlyController(t *testing.T) {
	t.Parallel()
	b, now := newTestBreakers("app"), breakerDay
	counts := map[string]int64{"app": 100, "handlers of v1.Pod informer": 100, "webhook /x": 100, "mine": 100, "": 100}
	if got, want := took(b, now, counts), []string{"app kept"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	counts["app"]++
	if got := took(b, now, counts); len(got) > 0 || b.wait("app", now) != 0 {
		t.Errorf("the second time got %q, want nothing", got)
	}
	counts["app"] = 0
	took(b, now, counts)
	if c := b.condition(); c.paused || c.message != "no controller is paused" {
		t.Errorf("when it has ended got the condition %+v", c)
	}
}

func TestBreakerSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	b, now := newTestBreakers("app", "works"), time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)
	l := leaked(now, map[string]int64{"app": 20})
	l.findings[0].Culprit.Function = "op.leak"
	var got []string
	for range 3 {
		for _, c := range b.step(l) {
			e := c.event()
			got = append(got, fmt.Sprintf("%s %s %s: %s", e.kind, e.reason, e.action, e.note))
		}
		got = append(got, b.condition().message)
		l.now = l.now.Add(DefaultBreakerPause)
		l.findings[0].LastSeen = l.now
	}
	want := []string{
		"Warning LeakBreaker Pause/open/2030-01-02T03:09:00Z/app: controller app is paused for 5m0s, until 2030-01-02T03:09:00Z: 20 leaked in op.leak, more than the 10 that it may",
		"controller app is paused until 2030-01-02T03:09:00Z: 20 leaked in op.leak, more than the 10 that it may",
		"Normal LeakBreaker Pause/trial/2030-01-02T03:10:00Z/app: controller app runs again, on trial for 1m0s, until 2030-01-02T03:10:00Z",
		"controller app is on trial until 2030-01-02T03:10:00Z",
		"Normal LeakBreaker Pause/closed/2030-01-02T03:19:00Z/app: controller app runs on: it has leaked nothing more in a trial of 1m0s",
		"no controller is paused",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestBreakerReleases lets go what is paused: nobody would end the pause.
func TestBreakerReleases(t *testing.T) {
	t.Parallel()
	b := newTestBreakers("app", "works")
	if b.release() {
		t.Error("got something released when nothing was paused")
	}
	b = newTestBreakers("app", "works")
	took(b, breakerDay, map[string]int64{"app": 100})
	if b.wait("app", breakerDay) == 0 || !b.release() || b.wait("app", breakerDay) != 0 {
		t.Error("the paused controller was not released")
	}
}

// TestPanicOfTheDetectorReleases must not leave a controller paused for ever.
func TestPanicOfTheDetectorReleases(t *testing.T) {
	t.Parallel()
	s := testSampler(t, Options{Breaker: &Breaker{MaxLeaked: 10}})
	b := s.guard.breakers
	b.wait("app", breakerDay)
	b.wait("works", breakerDay)
	took(b, time.Now(), map[string]int64{"app": 100})
	s.detector.orphans = nil // the next step panics
	if b.state("app") != breakerOpen {
		t.Fatal("the controller was not paused")
	}
	s.tick(t.Context())
	if got := b.wait("app", time.Now()); got != 0 {
		t.Errorf("got wait %v, want none", got)
	}
}

func TestBreakerIsOffByDefault(t *testing.T) {
	t.Parallel()
	b := newBreakers(nil, timing{scale: 1})
	if got := took(b, breakerDay, map[string]int64{"app": 1e6}); len(got) > 0 || b.wait("app", breakerDay) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

// TestBreakerTimesHoldTheGrace does not judge before it can be known what had leaked.
func TestBreakerTimesHoldTheGrace(t *testing.T) {
	t.Parallel()
	b := newBreakers(&Breaker{MaxLeaked: 1, Pause: time.Second, Trial: time.Second}, timing{scale: 1, grace: DefaultGrace})
	if b.pause != DefaultGrace || b.trial != 2*DefaultGrace {
		t.Errorf("got a pause of %v and a trial of %v, want %v and %v", b.pause, b.trial, DefaultGrace, 2*DefaultGrace)
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
