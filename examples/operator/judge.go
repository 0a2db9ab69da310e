package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/examples/traps"
	"github.com/leakguard/leakguard/leakguard"
)

// What --expect=silence asks of the run, so that silence is no accident.
const (
	minReconciles = 5.0  // a second, of each controller
	minSamples    = 0.8  // of those that were due
	lastPart      = 0.25 // of the run, in which the controllers must be as busy as over all of it
)

// judge follows the reports of a run and compares them with what was expected.
type judge struct {
	op      *operator
	started time.Time
	// states holds the state in which each finding was last seen, by fingerprint.
	states map[string]leakguard.State
	// alarms are the findings that ever were pending or firing, as they were when they first were.
	alarms []leakguard.Finding
	// final is the report at the end of the run, which lasted so long.
	final  *leakguard.Report
	lasted time.Duration
	// counts are the reconciles up to each report that was seen.
	counts []count
}

// count is how many reconciles each controller had begun at a time.
type count struct {
	at         time.Time
	reconciles map[string]uint64
}

// maxCounts bounds the memory of a run without end, whose first half is then forgotten.
const maxCounts = 10_000

func newJudge(o *operator) *judge {
	return &judge{op: o, started: time.Now(), states: map[string]leakguard.State{}}
}

// see looks at a report and prints what is new in it.
func (j *judge) see(r *leakguard.Report) {
	j.count(r)
	for _, f := range r.Findings {
		if j.states[f.Fingerprint] == f.State {
			continue
		}
		j.states[f.Fingerprint] = f.State
		if f.State == leakguard.StatePending || f.State == leakguard.StateFiring {
			j.alarms = append(j.alarms, f)
		}
		j.op.printChange(time.Since(j.started), f)
	}
}

// count remembers the reconciles of a new report.
func (j *judge) count(r *leakguard.Report) {
	last := count{at: j.started}
	if len(j.counts) > 0 {
		last = j.counts[len(j.counts)-1]
	}
	if !r.At.After(last.at) {
		return
	}
	next := count{at: r.At, reconciles: map[string]uint64{}}
	for _, c := range r.Controllers {
		next.reconciles[c.Name] = c.Reconciles
	}
	if len(j.counts) >= maxCounts {
		j.counts = slices.Delete(j.counts, 0, maxCounts/2)
	}
	j.counts = append(j.counts, next)
}

// end takes the last report, before anything is stopped.
func (j *judge) end(r *leakguard.Report) {
	j.see(r)
	j.final, j.lasted = r, time.Since(j.started)
}

// rates gives the reconciles a second of each controller in the last part of the run; 1 is all of it.
func (j *judge) rates(part float64) map[string]float64 {
	out := map[string]float64{"app": 0, traps.LeakyController: 0}
	if len(j.counts) == 0 {
		return out
	}
	from, to := count{at: j.started}, j.counts[len(j.counts)-1]
	begin := to.at.Add(-time.Duration(part * float64(to.at.Sub(j.started))))
	for _, c := range j.counts {
		if !c.at.After(begin) {
			from = c
		}
	}
	if seconds := to.at.Sub(from.at).Seconds(); seconds > 0 {
		for name := range out {
			out[name] = float64(to.reconciles[name]-from.reconciles[name]) / seconds
		}
	}
	return out
}

// verdict gives nil when the run was as expected.
func (j *judge) verdict() error {
	switch j.op.expect {
	case expectFinding:
		return j.wantFinding()
	case expectListed:
		return errors.Join(j.wantSilence(), j.wantListed())
	case expectNotice:
		return errors.Join(j.wantSilence(), j.wantNotice())
	case expectSilence:
		return errors.Join(j.wantSilence(), j.wantBusy())
	}
	return nil
}

func (j *judge) wantFinding() error {
	trap, found := j.op.trap, false
	var errs []error
	for _, f := range j.final.Findings {
		switch {
		case f.State != leakguard.StateFiring:
		case isOwn(&f, trap):
			found = true
		case slices.Contains(trap.Also, f.Culprit.Function) && (f.Controller == "" || f.Controller == traps.LeakyController):
		default:
			errs = append(errs, fmt.Errorf("unexpected finding: %s", f.String()))
		}
	}
	if !found {
		errs = append(errs, fmt.Errorf("expected a firing finding of controller %q in %s (%s), there is none", trap.Controller, trap.Culprit.Function, base(trap.Culprit.File)))
	}
	return errors.Join(errs...)
}

// wantListed asks for the trap's own finding among those that do not alarm.
func (j *judge) wantListed() error {
	trap := j.op.trap
	for _, f := range j.final.Findings {
		if f.State == leakguard.StateListed && f.Controller == trap.Controller && matches(&f, trap.Culprit) {
			return nil
		}
	}
	return fmt.Errorf("expected a listed finding of controller %q in %s (%s), there is none", trap.Controller, trap.Culprit.Function, base(trap.Culprit.File))
}

// wantNotice asks for a notice that speaks of the trap's culprit, or a finding of that tier.
func (j *judge) wantNotice() error {
	trap := j.op.trap
	for _, notice := range j.final.Notices {
		if strings.Contains(notice, trap.Culprit.Function) {
			return nil
		}
	}
	for _, f := range j.final.Findings {
		if f.Tier == leakguard.TierNotice && matches(&f, trap.Culprit) {
			return nil
		}
	}
	return fmt.Errorf("expected a notice about %s, there is none", trap.Culprit.Function)
}

// isOwn reports whether a finding is the one that a trap is expected to make.
func isOwn(f *leakguard.Finding, trap *traps.Trap) bool {
	return f.Controller == trap.Controller && matches(f, trap.Culprit) && slices.Contains(trap.Evidence(), f.Rule)
}

// enough looks at a report and says whether the run need not go on.
func (j *judge) enough(r *leakguard.Report) bool {
	j.see(r)
	return j.op.untilFound && j.found(r)
}

// found reports whether the trap's own finding fires.
func (j *judge) found(r *leakguard.Report) bool {
	return slices.ContainsFunc(r.Findings, func(f leakguard.Finding) bool {
		return f.State == leakguard.StateFiring && isOwn(&f, j.op.trap)
	})
}

// matches reports whether a finding blames a place.
func matches(f *leakguard.Finding, site traps.Site) bool {
	return f.Culprit.Function == site.Function && (site.File == "" || f.Culprit.File == site.File)
}

func (j *judge) wantSilence() error {
	var errs []error
	for _, f := range j.alarms {
		errs = append(errs, fmt.Errorf("expected silence, but there was: %s", f.String()))
	}
	return errors.Join(errs...)
}

func (j *judge) wantBusy() error {
	var errs []error
	if bulk := j.op.load.bulk; bulk != nil {
		errs = append(errs, bulk.check())
	}
	if due, taken := j.final.Sampling.Due, j.final.Sampling.Taken; due == 0 || float64(taken) < minSamples*float64(due) {
		errs = append(errs, fmt.Errorf("only %d of %d due samples were taken, so silence means little", taken, due))
	}
	for _, part := range []float64{1, lastPart} {
		for name, rate := range j.rates(part) {
			if rate < minReconciles {
				errs = append(errs, fmt.Errorf("controller %s did only %.1f reconciles a second in the last %.0f %% of the run, so silence means little", name, rate, 100*part))
			}
		}
	}
	return errors.Join(errs...)
}

// base gives the last element of a path with either kind of slash.
func base(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
