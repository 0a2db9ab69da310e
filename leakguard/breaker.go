package leakguard

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leakguard/leakguard/probes"
)

// Defaults of [Breaker].
const (
	DefaultBreakerPause = 5 * time.Minute
	DefaultBreakerTrial = time.Minute
)

// Breaker configures the pausing of controllers that leak. Such a controller's reconciles return at once and are
// asked for again later; after the pause it is on trial, and when it leaks again the pause is twice as long, up to
// sixteen times. One controller at least is never paused.
type Breaker struct {
	// MaxLeaked is how many goroutines a firing finding of one controller may count before it is paused. It must be positive.
	MaxLeaked int64
	// Pause is the first pause; 0 means DefaultBreakerPause. Options.Scale applies to it.
	Pause time.Duration
	// Trial is how long a controller that leaks nothing must run after a pause; 0 means DefaultBreakerTrial. Options.Scale applies to it.
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

// The states of a breaker that is not closed.
const (
	breakerOpen  = "open"
	breakerTrial = "trial"
)

// maxPauses bounds the growth of the pause.
const maxPauses = 16

// breakers holds the breaker of each controller. step is called by the sampler, the rest by everybody.
type breakers struct {
	maxLeaked    int64
	pause, trial time.Duration

	mu   sync.RWMutex
	byID map[string]*breaker // by controller; nil when breakers are off; a closed one is not in it
	kept map[string]int64    // what a controller had leaked when its breaker was closed: it is not held against it again
}

type breaker struct {
	state   string
	until   time.Time
	pauses  int // how many times the first pause the present one is
	orphans int // at the start of the trial
	count   int64
}

// breakerChange is what step did to one controller.
type breakerChange struct {
	controller, state string
	pause             time.Duration
	leaked            int64
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
	return &breakers{maxLeaked: b.MaxLeaked, pause: scaled(pause), trial: scaled(trial), byID: map[string]*breaker{}, kept: map[string]int64{}}
}

// wait is how long a reconcile of the controller must be put off; 0 lets it run.
func (b *breakers) wait(controller string, now time.Time) time.Duration {
	if b.byID == nil {
		return 0
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	x := b.byID[controller]
	if x == nil || x.state != breakerOpen {
		return 0
	}
	return max(x.until.Sub(now), time.Millisecond)
}

// state is "open", "trial" or empty.
func (b *breakers) state(controller string) string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if x := b.byID[controller]; x != nil {
		return x.state
	}
	return ""
}

// step moves every breaker on by one tick and says what changed.
func (b *breakers) step(now time.Time, findings []Finding, orphans map[string]int, scopes []probes.ScopeStats) (changes []breakerChange) {
	if b.byID == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, x := range b.byID {
		if c, changed := b.moveLocked(name, x, now, orphans[name]); changed {
			changes = append(changes, c)
		}
	}
	for i := range findings {
		f := &findings[i]
		if f.State != StateFiring || f.Controller == "" || b.byID[f.Controller] != nil || f.Count-b.kept[f.Controller] <= b.maxLeaked {
			continue
		}
		if f.LastSeen.Before(now) || b.pausedLocked()+1 >= len(scopes) {
			continue // nothing new of it, or it is the last one that works
		}
		b.byID[f.Controller] = &breaker{state: breakerOpen, until: now.Add(b.pause), pauses: 1, count: f.Count}
		changes = append(changes, breakerChange{f.Controller, breakerOpen, b.pause, f.Count})
	}
	slices.SortFunc(changes, func(a, b breakerChange) int { return strings.Compare(a.controller, b.controller) })
	return changes
}

// moveLocked ends a pause or a trial whose time has come.
func (b *breakers) moveLocked(name string, x *breaker, now time.Time, orphans int) (c breakerChange, changed bool) {
	if now.Before(x.until) {
		return c, false
	}
	switch {
	case x.state == breakerOpen:
		x.state, x.until, x.orphans = breakerTrial, now.Add(b.trial), orphans
		return breakerChange{name, breakerTrial, b.trial, x.count}, true
	case orphans > x.orphans:
		x.pauses = min(2*x.pauses, maxPauses)
		pause := time.Duration(x.pauses) * b.pause
		x.state, x.until = breakerOpen, now.Add(pause)
		return breakerChange{name, breakerOpen, pause, x.count}, true
	}
	delete(b.byID, name)
	b.kept[name] = int64(orphans)
	return breakerChange{name, "closed", 0, x.count}, true
}

// pausedLocked counts the controllers that are paused.
func (b *breakers) pausedLocked() (n int) {
	for _, x := range b.byID {
		if x.state == breakerOpen {
			n++
		}
	}
	return n
}
