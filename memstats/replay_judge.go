package memstats

import (
	"fmt"
	"strings"
	"time"
)

// judge asks for the verdicts of all columns and records changes.
func (r *replay) judge(at time.Time, last bool) {
	for _, c := range r.columns {
		if c.role == RoleRestart || c.series.Samples() == 0 {
			continue
		}
		v := c.judge.Judge(c.series, r.covariates(c)...)
		r.refine(c, &v)
		c.hold(&v, at)
		if v.Shape != c.verdict.Shape || v.Outcome != c.verdict.Outcome || last && len(r.events) == 0 {
			r.events = append(r.events, Event{Time: at, Name: c.name, Verdict: v})
		}
		c.verdict = v
	}
}

// hold keeps a leak for half of the horizon that found it, unless half of its rise is gone: a staircase whose steps
// are as far apart as the windows would else come and go with each step.
func (c *column) hold(v *Verdict, at time.Time) {
	if v.Outcome == Leak {
		c.leak, c.leakAt = *v, at
		return
	}
	held := c.leak.Outcome == Leak && at.Sub(c.leakAt) <= c.leak.Horizon/2 && v.Level >= c.leak.Level-c.leak.Rise/2 && v.ExplainedBy == ""
	if held {
		*v = c.leak
	}
}

// covariates are the loads and works that may drive a column.
func (r *replay) covariates(of *column) []Covariate {
	if of.role == RoleLoad || of.role == RoleWork || of.role == RoleDerived {
		return nil
	}
	var all []Covariate
	for _, c := range r.columns {
		if c == of || c.series.Samples() == 0 {
			continue
		}
		if kind, ok := c.drives(); ok {
			all = append(all, Covariate{Name: c.name, Kind: kind, Series: c.series})
		}
	}
	return all
}

// drives says as what a column may drive others; allocations drive nothing, they are driven themselves.
func (c *column) drives() (kind CovariateKind, ok bool) {
	if isCycles(c.name) {
		return Cycles, true
	}
	name := normalName(c.name)
	switch c.role {
	case RoleLoad, RoleBacklog:
		return Load, true
	case RoleWork:
		return Work, !strings.Contains(name, "alloc") && !strings.Contains(name, "frees")
	case RoleCount, RoleBytes, RoleResident, RoleDerived, RoleRestart:
	}
	return 0, false
}

// refine applies what the role of a column knows beside its numbers.
func (r *replay) refine(c *column, v *Verdict) {
	switch c.role {
	case RoleLoad, RoleWork, RoleDerived:
		v.Outcome = Benign
	case RoleResident:
		r.refineResident(v)
	case RoleBacklog:
		r.refineBacklog(c, v)
	default:
	}
}

// refineResident: the kernel takes freed memory back late, so that only growth beside a Go heap that does not grow
// says something new.
func (r *replay) refineResident(v *Verdict) {
	if v.Shape == Stepped {
		v.Outcome = Benign
		v.Reason += "; resident memory keeps what was freed"
	}
	if v.Outcome != Leak {
		return
	}
	for _, c := range r.columns {
		if c.role == RoleBytes && c.series.Samples() > 0 && c.verdict.Outcome != Leak {
			v.Outcome = Suspect
			v.Reason += "; " + c.name + " does not, so it is outside the Go heap, or memory not given back"
			return
		}
	}
}

// refineBacklog: a queue is not a leak, but one that grows, or holds much memory for long, has a consumer that is too
// slow.
func (r *replay) refineBacklog(c *column, v *Verdict) {
	switch {
	case v.Shape == Growing && v.Outcome == Leak:
		v.Outcome = Suspect
		v.Reason += "; a backlog: what reads it is too slow or stopped"
	case c.minus >= 0 && c.peak >= 1000 && r.heldMemory(c):
		v.Outcome = Suspect
		v.Reason += fmt.Sprintf("; up to %.0f waited and held memory: the handler is slow and its buffer has no bound", c.peak)
	default:
		v.Outcome = Benign
	}
}

// heldMemory says whether memory was at least twice as high when the backlog was.
func (r *replay) heldMemory(backlog *column) bool {
	for _, c := range r.columns {
		if c.role != RoleBytes || c.peak < 2*c.series.First() || c.peak-c.series.First() < 64<<20 {
			continue
		}
		age := c.series.End().Sub(c.series.Start())
		if unit, _ := c.judge.unit(c.series, backlog.series, horizon{span: age, window: age / 24}, 0); unit > 0 {
			return true
		}
	}
	return false
}

func (r *replay) result() ReplayResult {
	result := ReplayResult{Lives: r.lives, Events: r.events, Series: []SeriesVerdict{}, Findings: []Finding{}}
	for _, c := range r.columns {
		if c.role == RoleRestart {
			continue
		}
		v := c.verdict
		if c.endedLeaking && v.Outcome < Leak {
			v = c.died
			v.Reason += " (until a restart ended it)"
		}
		s := SeriesVerdict{Name: c.name, Role: c.role, Shape: v.Shape, PerHour: v.PerHour, Outcome: v.Outcome, Reason: v.Reason, Verdict: v}
		if !v.Since.IsZero() {
			since := v.Since.UTC()
			s.Since = &since
		}
		result.Series = append(result.Series, s)
		result.Verdict = max(result.Verdict, v.Outcome)
	}
	result.Findings = append(result.Findings, r.findings(result.Series)...)
	r.timeToLimit(&result)
	return result
}

// timeToLimit estimates from the first column of memory that leaks.
func (r *replay) timeToLimit(result *ReplayResult) {
	for _, s := range result.Series {
		if s.Role != RoleBytes && s.Role != RoleResident {
			continue
		}
		if left, ok := EstimateTimeToLimit(s.Verdict, float64(r.options.LimitBytes)); ok {
			result.TimeToLimit = &left
			return
		}
	}
}

// findings makes one finding per thing that leaks: bytes and objects of the heap are one, and so are all columns that
// leave something behind with each unit of the same work.
func (r *replay) findings(series []SeriesVerdict) (all []Finding) {
	last := time.Time{}
	if n := len(r.table.Times); n > 0 {
		last = r.table.Times[n-1]
	}
	heap := -1
	for _, s := range series {
		if s.Outcome == Benign {
			continue
		}
		inHeap := s.Role == RoleBytes || strings.Contains(normalName(s.Name), "heap_objects")
		if inHeap && heap >= 0 && all[heap].Verdict >= s.Outcome {
			all[heap].Reason += "; " + s.Name + " too"
			continue
		}
		f := Finding{
			Verdict: s.Outcome, PerHour: s.PerHour, Count: int64(s.Verdict.Rise), FirstSeen: s.Verdict.Since, LastSeen: last,
			Reason: s.Name + ": " + s.Reason,
		}
		f.Rule, f.Category, f.Advice, f.Trap = classify(s)
		f.finish(s.Name)
		if inHeap {
			heap = len(all)
		}
		all = append(all, f)
	}
	return all
}
