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
	for _, l := range j.op.leaks {
		l.see(r, time.Since(j.started))
	}
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
	out := map[string]float64{"app": 0}
	for _, name := range j.op.leakyControllers() {
		out[name] = 0
	}
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
	case expectFinding, expectEach:
		return errors.Join(j.wantEach(), j.wantInTime(), j.wantNothingElse())
	case expectListed, expectNotice:
		return errors.Join(j.wantSilence(), j.wantEach())
	case expectQuiet:
		return errors.Join(j.wantSilence(), j.wantSamples())
	case expectSilence:
		return errors.Join(j.wantSilence(), j.wantSamples(), j.wantBusy())
	}
	return nil
}

// wantEach asks for what each trap declares.
func (j *judge) wantEach() error {
	var errs []error
	for _, l := range j.op.leaks {
		if !l.reached() {
			errs = append(errs, fmt.Errorf("%s: expected %s, got %s: no such finding of controller %q in %s (%s) by rule %s",
				l.label(), l.expects(), l.got(), l.blamed(), l.Culprit.Function, base(l.Culprit.File), orDash(strings.Join(l.Evidence(), " or "))))
		}
	}
	return errors.Join(errs...)
}

// wantInTime refuses alarms that took more samples than those of their rule do.
func (j *judge) wantInTime() error {
	var errs []error
	for _, l := range j.op.leaks {
		if l.late() {
			errs = append(errs, fmt.Errorf("%s: fired after %d samples, want %d at most", l.label(), l.samples, l.Deadline()))
		}
	}
	return errors.Join(errs...)
}

// wantNothingElse refuses alarms that belong to no trap. Several leaks together make the process's own totals rise, such
// as all open files, which then are no surprise.
func (j *judge) wantNothingElse() error {
	var errs []error
	for i := range j.alarms {
		f := &j.alarms[i]
		alarming := func(l *leak) bool { return l.expects() == traps.ExpectAlarm }
		switch {
		case slices.ContainsFunc(j.op.leaks, func(l *leak) bool { return alarming(l) && l.explains(f) }):
		case len(j.op.leaks) > 1 && slices.ContainsFunc(j.op.leaks, alarming) && isTotal(f):
		case f.State == leakguard.StateFiring, !slices.ContainsFunc(j.op.leaks, alarming):
			errs = append(errs, fmt.Errorf("unexpected finding: %s", f.String()))
		}
	}
	return errors.Join(errs...)
}

// isTotal reports whether a finding is about a number of the whole process.
func isTotal(f *leakguard.Finding) bool { return f.Controller == "" && f.Culprit.File == "" }

// enough looks at a report and says whether the run need not go on.
func (j *judge) enough(r *leakguard.Report) bool {
	j.see(r)
	return j.op.untilFound && !slices.ContainsFunc(j.op.leaks, func(l *leak) bool { return !l.reached() })
}

func (j *judge) wantSilence() error {
	var errs []error
	for _, f := range j.alarms {
		errs = append(errs, fmt.Errorf("expected silence, but there was: %s", f.String()))
	}
	return errors.Join(errs...)
}

func (j *judge) wantSamples() error {
	if due, taken := j.final.Sampling.Due, j.final.Sampling.Taken; due == 0 || float64(taken) < minSamples*float64(due) {
		return fmt.Errorf("only %d of %d due samples were taken, so silence means little", taken, due)
	}
	return nil
}

func (j *judge) wantBusy() error {
	var errs []error
	if bulk := j.op.load.bulk; bulk != nil {
		errs = append(errs, bulk.check())
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
