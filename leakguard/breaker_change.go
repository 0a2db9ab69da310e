package leakguard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The states in a breakerChange beside those of a breaker.
const (
	breakerEnded = "closed"
	breakerKept  = "kept" // it goes on although it leaks: all others are paused
)

// breakerChange is what step did to one controller, or did not although it leaks.
type breakerChange struct {
	controller, state string
	until             time.Time
	note              string
}

// change says what has become of a breaker; took is how long the pause or the trial takes, for a closed one took.
func (x *breaker) change(name string, took time.Duration) breakerChange {
	c := breakerChange{controller: name, state: x.state, until: x.until}
	switch x.state {
	case breakerOpen:
		c.note = fmt.Sprintf("controller %s is paused for %s, until %s: %s", name, took, clock(x.until), x.why)
	case breakerTrial:
		c.note = fmt.Sprintf("controller %s runs again, on trial for %s, until %s", name, took, clock(x.until))
	default:
		c.state = breakerEnded
		c.note = fmt.Sprintf("controller %s runs on: it has leaked nothing more in a trial of %s", name, took)
	}
	return c
}

// keep says once that a controller goes on although it leaks.
func (x *breaker) keep(name string) []breakerChange {
	if x.kept {
		return nil
	}
	x.kept = true
	return []breakerChange{{controller: name, state: breakerKept, until: x.until, note: fmt.Sprintf(
		"controller %s leaks and is not paused, for it is the last one that runs: %s", name, x.why)}}
}

// clock prints a moment for a person elsewhere.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// event gives the Event about a change. Each pause and each trial is one of its own, for the API's clients join Events that
// differ in their note only.
func (c *breakerChange) event() podEvent {
	e := podEvent{kind: corev1.EventTypeNormal, reason: "LeakBreaker", action: "Pause/" + c.state, note: c.note}
	if c.state == breakerOpen || c.state == breakerKept {
		e.kind = corev1.EventTypeWarning
	}
	if !c.until.IsZero() {
		e.action += "/" + clock(c.until)
	}
	e.action += "/" + c.controller
	return e
}

// condition says which controllers are paused, and what else there is to say of the others.
func (b *breakers) condition() podCondition {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var c podCondition
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(b.byID)) {
		switch x := b.byID[name]; {
		case x.state == breakerOpen:
			c.paused = true
			parts = append(parts, fmt.Sprintf("controller %s is paused until %s: %s", name, clock(x.until), x.why))
		case x.kept:
			parts = append(parts, fmt.Sprintf("controller %s leaks and is not paused, for it is the last one that runs: %s", name, x.why))
		case x.state == breakerTrial:
			parts = append(parts, fmt.Sprintf("controller %s is on trial until %s", name, clock(x.until)))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no controller is paused")
	}
	c.message = truncate(strings.Join(parts, "; "), maxNote)
	return c
}
