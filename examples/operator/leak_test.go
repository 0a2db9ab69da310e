package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leakguard/leakguard/examples/traps"
	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// newLeak makes a trap as it is one of several.
func newLeak(t *testing.T, name string, twin bool) *leak {
	t.Helper()
	trap, err := traps.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return &leak{Trap: trap, twin: twin, controller: "leaky-" + name}
}

// own is the finding that a trap should make.
func own(l *leak, state leakguard.State) leakguard.Finding {
	rule := ""
	if rules := l.Evidence(); len(rules) > 0 {
		rule = rules[0]
	}
	return leakguard.Finding{
		Fingerprint: l.Name + string(state), Controller: l.blamed(), Rule: rule, State: state, Count: 7,
		Culprit: frame.Frame{Function: l.Culprit.Function, File: l.Culprit.File},
	}
}

func TestWhatIsSaidOfATrap(t *testing.T) {
	t.Parallel()
	changed := func(f leakguard.Finding, change func(*leakguard.Finding)) leakguard.Finding {
		change(&f)
		return f
	}
	send, sendTwin := newLeak(t, "chan-send", false), newLeak(t, "chan-send", true)
	notice, silent, queue := newLeak(t, "ignored-context", false), newLeak(t, "lazy-informer", false), newLeak(t, "workqueue", false)
	firing := own(send, leakguard.StateFiring)
	for _, test := range []struct {
		name     string
		leak     *leak
		findings []leakguard.Finding // a report each
		want     traps.Expect
	}{
		{"it fires", send, []leakguard.Finding{own(send, leakguard.StatePending), firing}, traps.ExpectAlarm},
		{"it is pending only", send, []leakguard.Finding{own(send, leakguard.StatePending)}, statePending},
		{"it went away", send, []leakguard.Finding{firing, own(send, leakguard.StateResolved)}, statePending},
		{"listed only", send, []leakguard.Finding{own(send, leakguard.StateListed)}, traps.ExpectListed},
		{"another controller", send, []leakguard.Finding{changed(firing, func(f *leakguard.Finding) { f.Controller = "leaky" })}, traps.ExpectSilent},
		{"another rule", send, []leakguard.Finding{changed(firing, func(f *leakguard.Finding) { f.Rule = "growth" })}, traps.ExpectSilent},
		{"another place", send, []leakguard.Finding{changed(firing, func(f *leakguard.Finding) { f.Culprit.File += "x" })}, traps.ExpectSilent},
		{"type arguments in the name", queue, []leakguard.Finding{changed(own(queue, leakguard.StateFiring), func(f *leakguard.Finding) {
			f.Culprit.Function = strings.Replace(f.Culprit.Function, "delayingType", "delayingType[...]", 1)
		})}, traps.ExpectAlarm},
		{"nothing of a twin", sendTwin, nil, traps.ExpectSilent},
		{"a listed finding of a twin", sendTwin, []leakguard.Finding{own(sendTwin, leakguard.StateListed)}, traps.ExpectSilent},
		{"an alarm of a twin that went away", sendTwin, []leakguard.Finding{firing, {}}, traps.ExpectAlarm},
		{"an alarm of its controller alone", silent, []leakguard.Finding{{Controller: silent.controller, State: leakguard.StateFiring}}, traps.ExpectAlarm},
		{"a notice", notice, []leakguard.Finding{changed(own(notice, leakguard.StateListed), func(f *leakguard.Finding) { f.Tier = leakguard.TierNotice })}, traps.ExpectNotice},
		{"a notice that was pending", notice, []leakguard.Finding{own(notice, leakguard.StatePending), changed(own(notice, leakguard.StateListed), func(f *leakguard.Finding) { f.Tier = leakguard.TierNotice })}, statePending},
	} {
		l := &leak{Trap: test.leak.Trap, twin: test.leak.twin, controller: test.leak.controller}
		for i, f := range test.findings {
			l.see(&leakguard.Report{Findings: []leakguard.Finding{f}}, time.Duration(i+1)*time.Second)
		}
		if got := l.got(); got != test.want || l.reached() != (test.want == l.expects()) {
			t.Errorf("%s: got %s, reached %t, want %s", test.name, got, l.reached(), test.want)
		}
	}
}

// An alarm may take so many samples, however long those take. What does not alarm has no deadline.
func TestAlarmsHaveADeadline(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		trap  string
		twin  bool
		after func(l *leak) []uint64 // the samples of reports in which its finding fires
		late  bool
	}{
		{"in time", "watch-idle", false, func(l *leak) []uint64 { return []uint64{l.Deadline(), 10 * l.Deadline()} }, false},
		{"one too late", "watch-idle", false, func(l *leak) []uint64 { return []uint64{l.Deadline() + 1} }, true},
		{"minutes late for a count that takes seconds", "watch-idle", false, func(*leak) []uint64 { return []uint64{120} }, true},
		{"the same for orphans", "chan-send", false, func(*leak) []uint64 { return []uint64{120} }, false},
		{"a trap of its own time", "registered-map", false, func(*leak) []uint64 { return []uint64{450} }, false},
		{"never", "watch-idle", false, func(*leak) []uint64 { return nil }, false},
		{"a twin, which is no question of time", "watch-idle", true, func(l *leak) []uint64 { return []uint64{l.Deadline() + 1} }, false},
	} {
		l := newLeak(t, test.trap, test.twin)
		for i, taken := range test.after(l) {
			report := &leakguard.Report{Findings: []leakguard.Finding{own(l, leakguard.StateFiring)}}
			report.Sampling.Taken = taken
			l.see(report, time.Duration(i+1)*time.Second)
		}
		err := (&judge{op: &operator{settings: &settings{leaks: []*leak{l}}}}).wantInTime()
		if late := err != nil && strings.Contains(err.Error(), test.trap+": fired after"); late != test.late || l.result().FiringSamples != l.samples {
			t.Errorf("%s: got %v after %d samples, want late: %t", test.name, err, l.samples, test.late)
		}
	}
}

// What belongs to no trap must not fire, and must not even be pending where nothing should alarm.
func TestNothingElseMayFire(t *testing.T) {
	t.Parallel()
	send, watch := newLeak(t, "chan-send", false), newLeak(t, "watch-http1", false)
	stranger := func(state leakguard.State) leakguard.Finding {
		return leakguard.Finding{Fingerprint: "stranger", Controller: "app", State: state}
	}
	part := func(l *leak, controller string) leakguard.Finding {
		return leakguard.Finding{Controller: controller, State: leakguard.StateFiring, Culprit: frame.Frame{Function: l.Also[0]}}
	}
	for _, test := range []struct {
		name    string
		leaks   []*leak
		finding leakguard.Finding
		refused bool
	}{
		{"their own", []*leak{send, watch}, own(send, leakguard.StateFiring), false},
		{"the connection of a watch", []*leak{send, watch}, part(watch, watch.controller), false},
		{"the connection of a watch in another controller", []*leak{send, watch}, part(watch, send.controller), true},
		{"a firing stranger", []*leak{send, watch}, stranger(leakguard.StateFiring), true},
		{"a total beside leaks", []*leak{send, watch}, leakguard.Finding{State: leakguard.StateFiring, Culprit: frame.Frame{Function: "watches"}}, false},
		{"a total beside one leak", []*leak{send}, leakguard.Finding{State: leakguard.StateFiring, Culprit: frame.Frame{Function: "watches"}}, true},
		{"a pending stranger beside a leak", []*leak{send, watch}, stranger(leakguard.StatePending), false},
		{"a pending stranger beside twins", []*leak{newLeak(t, "chan-send", true)}, stranger(leakguard.StatePending), true},
	} {
		j := &judge{op: &operator{settings: &settings{leaks: test.leaks}}, alarms: []leakguard.Finding{test.finding}}
		if err := j.wantNothingElse(); (err != nil) != test.refused {
			t.Errorf("%s: got %v, want an error: %t", test.name, err, test.refused)
		}
	}
}

type waiter[T any] struct{}

func (*waiter[T]) wait(c <-chan T) { <-c }

// goleak gives its answer as a text, whose form is its own.
func TestGoleakStacks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c := make(chan int)
	go new(waiter[int]).wait(c)
	const want = "github.com/leakguard/leakguard/examples/operator.(*waiter).wait"
	l := &leak{Trap: traps.Trap{Culprit: traps.Site{Function: want}}}
	if got := l.leftBy(goleakStacks(before)); got != 1 {
		t.Errorf("got %d goroutines in %s, want 1 among %v", got, want, goleakStacks(before))
	}
	close(c)
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	if got := goleakStacks(before); slices.ContainsFunc(got, func(g group) bool { return l.leftBy([]group{g}) > 0 }) {
		t.Errorf("got %v after the end of the goroutine, want none", got)
	}
}
