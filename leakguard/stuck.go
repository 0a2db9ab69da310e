package leakguard

import (
	"fmt"
	"strings"
	"time"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// The rules about goroutines that cannot go on, however few they are.
const (
	ruleLock    = "lock-wait"     // rule L: parked in a lock for minutes
	ruleForever = "waits-forever" // rule S: select without cases outside main
)

// maxStuckPlaces bounds the places that are followed.
const maxStuckPlaces = 1024

// stuckTable follows the places that wait for a lock, or for ever.
type stuckTable struct {
	timing  timing
	main    string
	places  map[[2]string]*stuckPlace // by reason and culprit
	started bool
	dropped uint64
}

// stuckPlace is the goroutines of one culprit that wait for one reason.
type stuckPlace struct {
	reason, culprit string
	since           time.Time // from when on it never was empty
	born            int       // how many came since the first tick, beyond those that were there
	baseline        int
	checked         map[uint64]bool // ids of the last dump
	checkAt         time.Time
	checks          int  // dumps that did not decide: the next one is asked for later and later
	decided         bool // the same goroutines were there in two dumps, or waited for minutes
	refused         bool

	// this tick
	count      int
	controller string
	sample     *stackmatch.Group
}

func newStuckTable(t timing, main string) *stuckTable {
	return &stuckTable{timing: t, main: main, places: map[[2]string]*stuckPlace{}}
}

// isLockWait reports whether a wait reason is that of a lock. A WaitGroup or a Cond is none: their waits may last.
func isLockWait(reason string) bool {
	return strings.HasPrefix(reason, "sync.Mutex") || strings.HasPrefix(reason, "sync.RWMutex")
}

// observe takes in one tick's groups.
func (t *stuckTable) observe(ev *Evidence) {
	for _, p := range t.places {
		p.count, p.sample = 0, nil
	}
	for i := range ev.Groups {
		t.take(&ev.Groups[i])
	}
	for key, p := range t.places {
		if p.count == 0 {
			delete(t.places, key)
			continue
		}
		if p.since.IsZero() {
			p.since = ev.At
			if !t.started {
				p.baseline = p.count
			}
		}
		p.born = max(p.born, p.count-p.baseline)
	}
	t.started = true
}

func (t *stuckTable) take(g *stackmatch.Group) {
	forever := g.WaitReason == "select (no cases)"
	if !forever && !isLockWait(g.WaitReason) {
		return
	}
	culprit, pattern := blame(g.Stack, frame.Frame{}, t.main)
	if forever && (pattern || isMainOrInit(g.Stack)) {
		return // controller-runtime itself parks on a nil Done, and main may
	}
	key := [2]string{g.WaitReason, culprit.Function}
	p := t.places[key]
	if p == nil {
		if len(t.places) >= maxStuckPlaces {
			t.dropped++
			return
		}
		p = &stuckPlace{reason: g.WaitReason, culprit: culprit.Function}
		t.places[key] = p
	}
	p.count += g.Count
	if p.sample == nil || g.Count > p.sample.Count {
		p.sample = g
		p.controller, _ = g.Label(probes.LabelController)
	}
}

// isMainOrInit reports whether a goroutine is the main one or one of a package's initialisation.
func isMainOrInit(stack []frame.Frame) bool {
	root := frame.Split(frame.Root(stack).Function)
	return root.Receiver == "" && ((root.Package == "main" && root.Name == "main") || root.Name == "init")
}

// judge gives the signals of rules L and S and reports whether a dump is wanted to decide one.
func (t *stuckTable) judge(ev *Evidence, emit func(signal)) (wantDump bool) {
	for _, p := range t.places {
		age := ev.At.Sub(p.since)
		if isLockWait(p.reason) {
			if age < 2*t.timing.aged {
				continue
			}
			p.askDump(ev, t.timing)
			wantDump = wantDump || (!p.decided && p.due(ev.At.Add(t.timing.interval), t.timing))
			emit(p.lockSignal(t.main, age))
			continue
		}
		if age >= t.timing.aged {
			emit(p.foreverSignal(t.main))
		}
	}
	return wantDump
}

// askDump looks whether the same goroutines wait as in an earlier dump, or one has waited for two minutes: under mere
// contention they change. A goroutine is the same by its id.
func (p *stuckPlace) askDump(ev *Evidence, t timing) {
	p.refused = ev.DumpRefused
	if ev.Dump == nil || !p.due(ev.At, t) {
		return
	}
	now := map[uint64]bool{}
	stayed, waited := false, false
	for i := range ev.Dump.Goroutines {
		g := &ev.Dump.Goroutines[i]
		if !isLockWait(g.WaitReason) || !hasFunction(g.Stack, p.culprit) {
			continue
		}
		now[g.ID] = true
		stayed = stayed || p.checked[g.ID]
		waited = waited || g.Wait >= 2*time.Minute
	}
	p.decided = stayed || waited
	p.checks++
	p.checked, p.checkAt = now, ev.At
}

// due reports whether it is time for another dump: half a minute after the last one, twice as long after each that did not
// decide, up to a quarter of an hour.
func (p *stuckPlace) due(now time.Time, t timing) bool {
	return p.checkAt.IsZero() || now.Sub(p.checkAt) >= t.aged/2<<min(max(p.checks-1, 0), 5)
}

func hasFunction(stack []frame.Frame, function string) bool {
	for _, f := range stack {
		if f.Function == function {
			return true
		}
	}
	return false
}

func (p *stuckPlace) lockSignal(main string, age time.Duration) signal {
	s := p.signal(main, ruleLock)
	s.reason = fmt.Sprintf("%d goroutines have waited for a lock, the place was never empty for %s", p.count, age.Round(time.Second))
	s.advice = "find who holds the lock: another goroutine inside the same critical section, or one that returned without Unlock"
	switch {
	case p.decided:
		s.level, s.tier = levelFiring, TierLikely
	case p.refused:
		s.reason += "; not decided: dump over budget"
	}
	return s
}

func (p *stuckPlace) foreverSignal(main string) signal {
	s := p.signal(main, ruleForever)
	s.reason = fmt.Sprintf("%d goroutines wait in a select without cases, %d of them came since the guard started", p.count, p.born)
	s.advice = "nothing can ever wake them: wait for a context or a stop channel instead"
	if p.born >= pendingSpans {
		s.level, s.tier = levelFiring, TierLikely
	}
	return s
}

func (p *stuckPlace) signal(main, rule string) signal {
	culprit, pattern := blame(p.sample.Stack, frame.Frame{}, main)
	return signal{
		rule: rule, category: "goroutine-stuck", tier: TierListed, level: levelListed, controller: p.controller, culprit: culprit,
		pattern: pattern, count: int64(p.count), waitReason: p.sample.WaitReason, since: p.since, stack: p.sample.Stack, sample: p.sample,
	}
}
