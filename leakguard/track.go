package leakguard

import (
	"slices"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// track is the life of one finding: listed or pending → firing → resolved. A pending one that loses its evidence is
// dropped; a firing one goes on firing for as long as anything of it is left, but for a count that has grown and stays: that
// is then listed.
type track struct {
	finding  Finding
	lasting  int64     // of its Count, what is past the grace
	lastAny  time.Time // when any rule last spoke of it
	lastWarm time.Time // when one last called it pending or firing
	lastHeld time.Time // when something was last left that keeps it firing
	ended    time.Time // when it resolved
}

// update takes in this tick's strongest signal, nil for none, and reports whether the track is still wanted.
func (tr *track) update(s *signal, now time.Time, t timing) bool {
	f := &tr.finding
	if s != nil {
		tr.lastAny = now
		if s.level >= levelPending {
			tr.lastWarm = now
		}
		if s.level >= levelPending || s.rule != ruleAccounting {
			tr.lastHeld = now
		}
		tr.take(s, now)
	}
	switch f.State {
	case StateFiring:
		if now.Sub(tr.lastHeld) >= t.resolve {
			f.State, tr.ended = StateResolved, now
		}
	case StateResolved:
		return now.Sub(tr.ended) < t.keep
	case StatePending:
		if now.Sub(tr.lastWarm) >= t.quiet {
			f.State, f.Tier = StateListed, TierListed
		}
		return now.Sub(tr.lastAny) < t.quiet
	case StateListed:
		return now.Sub(tr.lastAny) < t.quiet
	}
	return true
}

// take copies the signal into the finding and moves its state up.
func (tr *track) take(s *signal, now time.Time) {
	f := &tr.finding
	f.Count, f.LastSeen, tr.lasting = s.count, now, s.count-s.young
	if f.State == StateFiring && s.level < levelFiring {
		return // what made it fire stays on record
	}
	f.Rule, f.Tier, f.PerHour, f.WaitReason = s.rule, s.tier, s.perHour, s.waitReason
	f.Reason, f.Advice, f.Trap = s.reason, s.advice, s.trap
	f.Culprit = s.culprit
	f.addStack(s.stack)
	for _, stack := range s.parts {
		f.addStack(stack)
	}
	switch {
	case s.level == levelFiring:
		f.State = StateFiring
	case s.level == levelPending:
		f.State = StatePending
	case f.State != StatePending:
		f.State = StateListed
	}
	if f.State == StatePending && f.Tier == TierListed {
		f.Tier = TierLikely
	}
	f.Verdict, f.Severity = stackmatch.VerdictSuspect, stackmatch.SeverityInfo
	if f.State == StateFiring {
		f.Verdict, f.Severity = stackmatch.VerdictLeak, severityOf(s)
	}
}

// severityOf is critical for what will not take long to bring the process down, and warning for the rest.
func severityOf(s *signal) stackmatch.Severity {
	piles := s.rule != ruleHeap && (s.count >= pile || s.perHour >= 10*pile) // bytes are no pile
	if piles || s.soon {
		return stackmatch.SeverityCritical
	}
	return stackmatch.SeverityWarning
}

// addStack keeps a stack as a sample unless one like it is there or there are enough.
func (f *Finding) addStack(stack []frame.Frame) {
	if len(stack) == 0 || len(f.Stacks) == maxStacks {
		return
	}
	for _, have := range f.Stacks {
		if sameFunctions(have, stack) {
			return
		}
	}
	f.Stacks = append(slices.Clip(f.Stacks), stack) // a copy: earlier reports share the old slice
}

func sameFunctions(a, b []frame.Frame) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Function != b[i].Function {
			return false
		}
	}
	return true
}
