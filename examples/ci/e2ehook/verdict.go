package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leakguard/leakguard/leakguard"
)

// outcome is what became of one finding.
type outcome struct {
	finding leakguard.Finding
	was     int64        // its count before the suite
	known   *suppression // nil for a leak
	expired *suppression // a suppression whose time is over
}

// verdict is what the suite did.
type verdict struct {
	outcomes []outcome
	pending  []leakguard.Finding // new, not decided
	unused   []*suppression
	redacted bool
}

// judge puts what is new or has grown into classes.
func judge(was, now *report, known []*suppression, state string, at time.Time) *verdict {
	v := &verdict{}
	counts := countsOf(was)
	for i := range now.Findings {
		f := &now.Findings[i]
		if before, ok := counts[f.Fingerprint]; ok && f.Count <= before {
			continue
		}
		switch {
		case f.State == leakguard.StateFiring, f.State == leakguard.StatePending && state == "pending":
			v.outcomes = append(v.outcomes, classify(f, counts[f.Fingerprint], known, at))
			v.redacted = v.redacted || f.Culprit.Function == ""
		case f.State == leakguard.StatePending:
			v.pending = append(v.pending, *f)
		}
	}
	for _, s := range known {
		if !s.used {
			v.unused = append(v.unused, s)
		}
	}
	return v
}

func classify(f *leakguard.Finding, was int64, known []*suppression, at time.Time) outcome {
	o := outcome{finding: *f, was: was}
	for _, s := range known {
		if !s.covers(f) {
			continue
		}
		s.used = true
		if !s.expired(at) {
			o.known = s
			return o
		}
		o.expired = s
	}
	return o
}

// countsOf gives the counts of the findings that alarm by fingerprint.
func countsOf(r *report) map[string]int64 {
	counts := map[string]int64{}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.State == leakguard.StateFiring || f.State == leakguard.StatePending {
			counts[f.Fingerprint] = f.Count
		}
	}
	return counts
}

// hasNewPending reports whether a finding is pending that was not there before.
func hasNewPending(was, now *report) bool {
	counts := countsOf(was)
	for i := range now.Findings {
		f := &now.Findings[i]
		if before, ok := counts[f.Fingerprint]; f.State == leakguard.StatePending && (!ok || f.Count > before) {
			return true
		}
	}
	return false
}

// code is the exit code of the worst class.
func (v *verdict) code() int {
	code := exitClean
	for i := range v.outcomes {
		if v.outcomes[i].known == nil {
			return exitLeak
		}
		code = exitKnown
	}
	return code
}

// says describes an outcome in one line.
func (o *outcome) says() string {
	s := o.finding.String()
	if o.was > 0 {
		s += fmt.Sprintf(", %d before the suite", o.was)
	}
	if o.known != nil {
		s += fmt.Sprintf("; known until %s, owner %s: %s", o.known.Until, o.known.Owner, o.known.Reason)
	}
	if o.expired != nil {
		s += fmt.Sprintf("; its suppression expired on %s, owner %s", o.expired.Until, o.expired.Owner)
	}
	return s
}

func (o *outcome) class() string {
	if o.known != nil {
		return "known"
	}
	return "leak"
}

// print writes the verdict for a person.
func (v *verdict) print(w io.Writer) {
	if len(v.outcomes) == 0 {
		say(w, "e2ehook: clean: the suite left nothing new\n")
	}
	for i := range v.outcomes {
		o := &v.outcomes[i]
		say(w, "e2ehook: %s: %s\n    %s\n", o.class(), o.says(), o.finding.Reason)
		if o.finding.Advice != "" {
			say(w, "    advice: %s\n", o.finding.Advice)
		}
	}
	for i := range v.pending {
		say(w, "e2ehook: not decided: %s\n", v.pending[i].String())
	}
	for _, s := range v.unused {
		say(w, "e2ehook: the suppression of %s, owner %s, fits nothing any more\n", s.name(), s.Owner)
	}
	if v.redacted {
		say(w, "e2ehook: the page gave no names: use kubectl port-forward, or -token-file with an authenticated metrics server\n")
	}
}

// annotate writes the verdict for GitHub.
func (v *verdict) annotate(write func(level string, a annotation)) {
	for i := range v.outcomes {
		o := &v.outcomes[i]
		level := "error"
		if o.known != nil {
			level = "notice"
		}
		write(level, annotation{title: o.class() + " in " + orUnknown(o.finding.Controller), file: o.finding.Culprit.File, line: o.finding.Culprit.Line, text: o.says() + "\n" + o.finding.Reason})
	}
	for _, s := range v.unused {
		write("notice", annotation{title: "suppression not needed", text: "the suppression of " + s.name() + ", owner " + s.Owner + ", fits nothing any more"})
	}
}

func orUnknown(controller string) string {
	if controller == "" {
		return "the operator"
	}
	return "controller " + controller
}

// cases gives the verdict as test cases.
func (v *verdict) cases() []testCase {
	if len(v.outcomes) == 0 && len(v.pending) == 0 {
		return []testCase{{Name: "leak check", Class: "leakguard"}}
	}
	var cases []testCase
	for i := range v.outcomes {
		o := &v.outcomes[i]
		c := testCase{Name: strings.TrimSpace(o.finding.Category + " " + o.finding.Controller + " " + o.finding.Culprit.Function), Class: "leakguard"}
		if o.known != nil {
			c.Skipped = &message{Message: "known: " + o.says()}
		} else {
			c.Failure = &message{Message: o.says(), Type: "leak", Text: o.finding.Reason + "\n" + o.finding.Advice}
		}
		cases = append(cases, c)
	}
	for i := range v.pending {
		f := &v.pending[i]
		cases = append(cases, testCase{
			Name:  strings.TrimSpace(f.Category + " " + f.Controller + " " + f.Culprit.Function),
			Class: "leakguard", Skipped: &message{Message: "not decided: " + f.String()},
		})
	}
	return cases
}
