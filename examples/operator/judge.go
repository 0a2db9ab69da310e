package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leakguard/leakguard/examples/traps"
	"github.com/leakguard/leakguard/leakguard"
)

// What --expect=silence asks of the run, so that silence is no accident.
const (
	minReconciles = 5.0 // a second, of each controller
	minSamples    = 0.8 // of those that were due
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
}

func newJudge(o *operator) *judge {
	return &judge{op: o, started: time.Now(), states: map[string]leakguard.State{}}
}

// see looks at a report and prints what is new in it.
func (j *judge) see(r *leakguard.Report) {
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

// end takes the last report, before anything is stopped.
func (j *judge) end(r *leakguard.Report) {
	j.see(r)
	j.final, j.lasted = r, time.Since(j.started)
}

// rates gives the reconciles a second of each controller over the whole run.
func (j *judge) rates() map[string]float64 {
	out := map[string]float64{"app": 0, traps.LeakyController: 0}
	for _, c := range j.final.Controllers {
		if _, ours := out[c.Name]; ours {
			out[c.Name] = float64(c.Reconciles) / j.lasted.Seconds()
		}
	}
	return out
}

// verdict gives nil when the run was as expected.
func (j *judge) verdict() error {
	switch j.op.expect {
	case expectFinding:
		return j.wantFinding()
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
		case f.Controller == trap.Controller && f.Culprit.Function == trap.Culprit.Function && f.Culprit.File == trap.Culprit.File:
			found = true
		default:
			errs = append(errs, fmt.Errorf("unexpected finding: %s", f.String()))
		}
	}
	if !found {
		errs = append(errs, fmt.Errorf("expected a firing finding of controller %q in %s (%s), there is none", trap.Controller, trap.Culprit.Function, base(trap.Culprit.File)))
	}
	return errors.Join(errs...)
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
	if due, taken := j.final.Sampling.Due, j.final.Sampling.Taken; due == 0 || float64(taken) < minSamples*float64(due) {
		errs = append(errs, fmt.Errorf("only %d of %d due samples were taken, so silence means little", taken, due))
	}
	for name, rate := range j.rates() {
		if rate < minReconciles {
			errs = append(errs, fmt.Errorf("controller %s did only %.1f reconciles a second, so silence means little", name, rate))
		}
	}
	return errors.Join(errs...)
}

// base gives the last element of a path with either kind of slash.
func base(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
