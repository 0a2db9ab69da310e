package main

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leakguard/leakguard/examples/traps"
	"github.com/leakguard/leakguard/leakguard"
)

// leak is a trap that this operator runs, and what leakguard has said of it so far.
type leak struct {
	traps.Trap
	twin bool
	// controller is the one whose reconciles do the work.
	controller string
	// shared says that other leaks have reconcilers of the same type.
	shared bool
	// rollouts counts how often the work was done for an object that is there.
	rollouts atomic.Int64

	pending, firing time.Duration // since the start of the run, when it first was; 0 is never
	samples         uint64        // that the guard had taken when it first fired
	fires           bool          // in the last report
	listed, noticed bool
	// found is its finding and rolled the rollouts, when it first fired; before that, when it was last seen.
	found  leakguard.Finding
	rolled int64
	peers  *peersResult // nil unless they were asked
}

// expects is what leakguard should say of it.
func (l *leak) expects() traps.Expect {
	if l.twin {
		return traps.ExpectSilent
	}
	return l.Expect
}

// start gives the set-up of its work.
func (l *leak) start() traps.Start {
	if l.twin {
		return l.Twin
	}
	return l.Leak
}

// counted gives the trap's work in reconciles, nil for none, that counts how often it was done.
func (l *leak) counted(work leakyWork) leakyWork {
	if work == nil {
		return nil
	}
	return func(ctx context.Context, object traps.Object) error {
		if !object.Deleted {
			l.rollouts.Add(1)
		}
		return work(ctx, object)
	}
}

// label is how messages call it.
func (l *leak) label() string {
	if l.twin {
		return "the twin of " + l.Name
	}
	return l.Name
}

// blamed is the controller that its finding must name.
func (l *leak) blamed() string {
	if l.Controller == traps.LeakyController {
		return l.controller
	}
	return l.Controller
}

// owns reports whether a finding is the one that the trap is expected to make.
func (l *leak) owns(f *leakguard.Finding) bool {
	return l.isAbout(f) && (l.expects() != traps.ExpectAlarm || slices.Contains(l.Evidence(), f.Rule))
}

// isAbout reports whether a finding blames the trap's culprit.
func (l *leak) isAbout(f *leakguard.Finding) bool {
	return l.Culprit != traps.Site{} && l.names(f) && generic(f.Culprit.Function) == l.Culprit.Function &&
		(l.Culprit.File == "" || f.Culprit.File == l.Culprit.File)
}

// names reports whether a finding names the controller that it must name.
func (l *leak) names(f *leakguard.Finding) bool {
	return f.Controller == l.blamed() || l.ByType && l.shared && f.Controller == ""
}

// disturbs reports whether a finding is one that the trap must not make: whatever blames its controller, where no alarm
// is expected.
func (l *leak) disturbs(f *leakguard.Finding) bool {
	return l.expects() != traps.ExpectAlarm && (f.Controller == l.controller || l.isAbout(f))
}

// generic gives a function without its type arguments, with which it may or may not be named.
func generic(function string) string { return strings.ReplaceAll(function, "[...]", "") }

// explains reports whether a finding is the expected one or another about the same leak: by a rule that had less to go
// by, or about library code that it leaves behind.
func (l *leak) explains(f *leakguard.Finding) bool {
	return l.isAbout(f) || slices.Contains(l.Also, f.Culprit.Function) && (f.Controller == "" || f.Controller == l.controller)
}

// see takes note of a report.
func (l *leak) see(r *leakguard.Report, since time.Duration) {
	l.fires = false
	for i := range r.Findings {
		f := &r.Findings[i]
		if !l.owns(f) && !l.disturbs(f) {
			continue
		}
		if l.firing == 0 {
			l.found, l.rolled = *f, l.rollouts.Load()
		}
		switch f.State {
		case leakguard.StatePending:
			l.pending = first(l.pending, since)
		case leakguard.StateFiring:
			l.samples = first(l.samples, r.Sampling.Taken)
			l.pending, l.firing, l.fires = first(l.pending, since), first(l.firing, since), true
		case leakguard.StateListed:
			l.listed = true
		case leakguard.StateResolved:
		}
		l.noticed = l.noticed || f.Tier == leakguard.TierNotice
	}
	if l.Culprit.Function != "" {
		l.noticed = l.noticed || slices.ContainsFunc(r.Notices, func(notice string) bool { return strings.Contains(notice, l.Culprit.Function) })
	}
}

func first[T time.Duration | uint64](before, now T) T {
	if before > 0 {
		return before
	}
	return now
}

// statePending is what leakguard said of a trap when it was about to alarm: no trap expects that.
const statePending = traps.Expect(leakguard.StatePending)

// got is what leakguard has said of it. An alarm that went away while the leak went on is none; one that nobody wanted is.
func (l *leak) got() traps.Expect {
	wanted := l.expects()
	switch {
	case l.fires, l.firing > 0 && wanted != traps.ExpectAlarm:
		return traps.ExpectAlarm
	case l.pending > 0:
		return statePending
	case l.noticed && wanted == traps.ExpectNotice:
		return traps.ExpectNotice
	case l.listed && wanted != traps.ExpectSilent:
		return traps.ExpectListed
	}
	return traps.ExpectSilent
}

// late reports whether its alarm came after its deadline.
func (l *leak) late() bool {
	return l.expects() == traps.ExpectAlarm && l.samples > l.Deadline()
}

// reached reports whether leakguard has said what it should.
func (l *leak) reached() bool { return l.got() == l.expects() }
