package leakguard

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Defaults of [Breaker].
const (
	DefaultBreakerPause = 5 * time.Minute
	DefaultBreakerTrial = time.Minute
)

// Breaker configures the pausing of controllers that leak. The reconciles of such a controller return at once and are asked
// for again when the pause is over. Then it is on trial: when what it had leaked has grown by the end of that, it is paused
// again, for twice as long, up to sixteen times; else it goes on, and what it has leaked is not held against it again. When it
// leaks beyond its allowance within half an hour (Options.Scale applies), or within what the last pause took if that is longer,
// that counts as another failed trial: some evidence takes minutes.
//
// Controllers are those whose reconciles carry labels, see [ControllerReport].Instrumented, and have run since the guard
// started. Of them one at least is never paused: when all others are, a controller goes on whatever it leaks, and an Event
// and the log say so. All are let go on when the guard stops.
//
// What is done is said in the log, the metric leakguard_breaker_open and, where POD_NAME and POD_NAMESPACE are set, in Events
// of reason LeakBreaker and in the condition [ControllerPaused] of the operator's Pod.
type Breaker struct {
	// MaxLeaked is how much a firing finding of one controller may count (goroutines, or what else it counts) before it is
	// paused. It must be positive.
	MaxLeaked int64
	// Pause is the first pause; 0 means DefaultBreakerPause. Options.Scale applies to it. It takes Options.Grace at least: only
	// then is known what had been leaked before.
	Pause time.Duration
	// Trial is how long a controller that leaks nothing must run after a pause; 0 means DefaultBreakerTrial. Options.Scale
	// applies to it. It takes twice Options.Grace at least: only what is older than the grace counts as leaked.
	Trial time.Duration
}

func (b *Breaker) validate() error {
	switch {
	case b == nil:
		return nil
	case b.MaxLeaked <= 0:
		return fmt.Errorf("%w: Breaker.MaxLeaked %d is not positive", ErrOptions, b.MaxLeaked)
	case b.Pause < 0:
		return fmt.Errorf("%w: Breaker.Pause %v is negative", ErrOptions, b.Pause)
	case b.Trial < 0:
		return fmt.Errorf("%w: Breaker.Trial %v is negative", ErrOptions, b.Trial)
	}
	return nil
}

// The states of a breaker; a closed one has none.
const (
	breakerClosed = ""
	breakerOpen   = "open"
	breakerTrial  = "trial"
)

// maxPauses bounds the growth of the pause.
const maxPauses = 16

// breakers holds the breaker of each controller. step and release are called by the sampler, the rest by everybody.
type breakers struct {
	maxLeaked            int64
	pause, trial, memory time.Duration

	mu   sync.RWMutex
	byID map[string]*breaker // by controller: those whose reconciles have asked; nil when breakers are off
}

// breaker is what is known of one controller.
type breaker struct {
	state  string
	until  time.Time        // the end of the pause or of the trial; of a closed one, until when its last pause is held against it
	pauses int              // how many times the first pause the last one was; 0 before the first
	base   map[string]int64 // by fingerprint: what was leaked when the trial began, or when it ended well
	why    string           // it is paused, or is not although it leaks
	kept   bool             // it leaks and is not paused, being the last one, and that was said
}

func newBreakers(b *Breaker, t timing) *breakers {
	if b == nil {
		return &breakers{}
	}
	pause, trial := b.Pause, b.Trial
	if pause == 0 {
		pause = DefaultBreakerPause
	}
	if trial == 0 {
		trial = DefaultBreakerTrial
	}
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * t.scale) }
	return &breakers{
		maxLeaked: b.MaxLeaked, pause: max(scaled(pause), t.grace), trial: max(scaled(trial), 2*t.grace), memory: t.memory,
		byID: map[string]*breaker{},
	}
}

// wait is how long a reconcile of the controller must be put off; 0 lets it run, as when a pause is over and no sample has
// come since. Whoever asks is a controller that can be paused.
func (b *breakers) wait(controller string, now time.Time) time.Duration {
	if b.byID == nil {
		return 0
	}
	b.mu.RLock()
	x, wait := b.byID[controller], time.Duration(0)
	if x != nil && x.state == breakerOpen {
		wait = max(x.until.Sub(now), 0)
	}
	b.mu.RUnlock()
	if x == nil {
		b.enrol(controller)
	}
	return wait
}

func (b *breakers) enrol(controller string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byID[controller] == nil {
		b.byID[controller] = &breaker{}
	}
}

// state is "open", "trial" or empty.
func (b *breakers) state(controller string) string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if x := b.byID[controller]; x != nil {
		return x.state
	}
	return breakerClosed
}

// release lets all controllers go on and forgets them, for nobody will end their pauses. It reports whether there was one
// that was paused or on trial.
func (b *breakers) release() (some bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.byID {
		some = some || x.state != breakerClosed
	}
	clear(b.byID)
	return some
}

// leaks is what the breakers ask the detector of one tick.
type leaks struct {
	now      time.Time
	findings []Finding
	lasting  func(*Finding) int64 // of what a finding counts, what is past the grace
}

// step moves every breaker on by one tick and says what changed: pauses that are over end first, then trials, then others may
// open, the one that leaks most before the others.
func (b *breakers) step(l leaks) (changes []breakerChange) {
	if b.byID == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	names := slices.Sorted(maps.Keys(b.byID))
	for _, name := range names {
		if x := b.byID[name]; x.state == breakerOpen && !l.now.Before(x.until) {
			changes = append(changes, b.tryLocked(name, x, l))
		}
	}
	for _, name := range names {
		if x := b.byID[name]; x.state == breakerTrial && !l.now.Before(x.until) {
			changes = append(changes, b.judgeLocked(name, x, l)...)
		}
	}
	for _, name := range names {
		b.byID[name].follow(name, l.findings)
	}
	return append(changes, b.openLocked(l)...)
}

// tryLocked begins a trial.
func (b *breakers) tryLocked(name string, x *breaker, l leaks) breakerChange {
	x.state, x.until, x.kept, x.why = breakerTrial, l.now.Add(b.trial), false, ""
	x.remember(name, l.findings, l.lasting)
	return x.change(name, b.trial)
}

// judgeLocked ends a trial. The last controller that runs is not paused: it stays on trial.
func (b *breakers) judgeLocked(name string, x *breaker, l leaks) []breakerChange {
	f, was := b.grown(name, x, l)
	if f == nil {
		x.state, x.until, x.kept, x.why = breakerClosed, l.now.Add(max(time.Duration(x.pauses)*b.pause, b.memory)), false, ""
		x.remember(name, l.findings, func(f *Finding) int64 { return f.Count })
		return []breakerChange{x.change(name, b.trial)}
	}
	why := fmt.Sprintf("it leaks on, %d → %d in %s", was, l.lasting(f), f.Culprit.Function)
	if !b.mayPauseLocked(name) {
		x.until = l.now.Add(b.trial)
		if !x.kept {
			x.why = why
		}
		x.remember(name, l.findings, l.lasting)
		return x.keep(name)
	}
	x.why = why
	return []breakerChange{b.pauseLocked(name, x, l.now)}
}

// openLocked pauses the controllers that have leaked beyond their allowance. Findings are ordered by what they count.
func (b *breakers) openLocked(l leaks) (changes []breakerChange) {
	leaking := map[string]bool{}
	for i := range l.findings {
		f := &l.findings[i]
		x := b.byID[f.Controller]
		if x == nil || x.state != breakerClosed || f.State != StateFiring || f.Count-x.base[f.Fingerprint] <= b.maxLeaked {
			continue
		}
		leaking[f.Controller] = true
		why := fmt.Sprintf("%d leaked in %s, more than the %d that it may", f.Count, f.Culprit.Function, x.base[f.Fingerprint]+b.maxLeaked)
		switch may := b.mayPauseLocked(f.Controller); {
		case f.LastSeen.Before(l.now): // nothing new of it
		case may:
			x.why = why
			changes = append(changes, b.pauseLocked(f.Controller, x, l.now))
		case !x.kept:
			x.why = why
			changes = append(changes, x.keep(f.Controller)...)
		}
	}
	for name, x := range b.byID {
		if x.state == breakerClosed && !leaking[name] {
			x.kept, x.why = false, ""
		}
	}
	return changes
}

// pauseLocked opens a breaker.
func (b *breakers) pauseLocked(name string, x *breaker, now time.Time) breakerChange {
	again := x.state == breakerTrial || now.Before(x.until)
	if !again {
		x.pauses = 0
	}
	x.pauses = min(max(2*x.pauses, 1), maxPauses)
	pause := time.Duration(x.pauses) * b.pause
	x.state, x.until, x.kept = breakerOpen, now.Add(pause), false
	return x.change(name, pause)
}

// mayPauseLocked reports whether another controller would run on.
func (b *breakers) mayPauseLocked(name string) bool {
	for other, x := range b.byID {
		if other != name && x.state != breakerOpen {
			return true
		}
	}
	return false
}

// grown gives a firing finding of a controller that counts more than when the trial began, and what it counted then; nil when
// there is none. One that was not there then has the allowance of any other. Where hundreds are counted it is an estimate,
// and a percent is no growth. Goroutines that are known by their number only may be short work: there the allowance is none
// either. A reconcile that hangs is counted so late that it began before the pause.
func (b *breakers) grown(name string, x *breaker, l leaks) (f *Finding, was int64) {
	for i := range l.findings {
		f := &l.findings[i]
		if f.Controller != name || f.State != StateFiring || f.Rule == ruleHung {
			continue
		}
		was, known := x.base[f.Fingerprint]
		more := was / 100
		if !known || f.Rule == ruleGrowth {
			more = max(more, b.maxLeaked)
		}
		if l.lasting(f) > was+more {
			return f, was
		}
	}
	return nil, 0
}

// remember takes what a controller's findings count now as what is not held against it.
func (x *breaker) remember(name string, findings []Finding, count func(*Finding) int64) {
	x.base = map[string]int64{}
	for i := range findings {
		if f := &findings[i]; f.Controller == name {
			x.base[f.Fingerprint] = count(f)
		}
	}
}

// follow lowers what is not held against a controller when some of it is gone, unless it is on trial.
func (x *breaker) follow(name string, findings []Finding) {
	if x.state == breakerTrial || len(x.base) == 0 {
		return
	}
	base := map[string]int64{}
	for i := range findings {
		f := &findings[i]
		if was, known := x.base[f.Fingerprint]; known && f.Controller == name {
			base[f.Fingerprint] = min(was, f.Count)
		}
	}
	x.base = base
}
