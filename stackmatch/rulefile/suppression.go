package rulefile

import (
	"regexp"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
)

// Suppression silences findings for a while. All of its selectors that are set must fit; at least one is.
type Suppression struct {
	// Rule, Category, Controller and Fingerprint select findings that have exactly these; empty means any.
	Rule        string `json:"rule"`
	Category    string `json:"category"`
	Controller  string `json:"controller"`
	Fingerprint string `json:"fingerprint"`
	// Culprit selects findings by the function to blame; zero means any.
	Culprit stackmatch.Pattern `json:"culprit"`
	// Owner is who answers for it, Reason why it is all right for now.
	Owner  string `json:"owner"`
	Reason string `json:"reason"`
	// Expires is from when on it no longer holds. A day in a file stands for its end, in UTC.
	Expires time.Time `json:"expires"`
	// Line is where it stands in the file, from 1.
	Line int `json:"-"`

	culprit *regexp.Regexp // of Culprit.Regexp
}

// Subject is what suppressions look at: the fields that findings of stackmatch and of leakguard have in common.
type Subject struct {
	// Rule is the id of the rule that matched, or of the evidence.
	Rule string
	// Category is the kind of trouble.
	Category string
	// Controller is the controller whose goroutines they are; empty when unknown.
	Controller string
	// Fingerprint is the stable name of the finding.
	Fingerprint string
	// Culprit is the function to blame.
	Culprit string
}

// SubjectOf gives the subject of a finding.
func SubjectOf(f *stackmatch.Finding) Subject {
	return Subject{
		Rule: f.Rule, Category: f.Category, Controller: f.Controller, Fingerprint: f.Fingerprint, Culprit: f.Culprit.Function,
	}
}

// Suppressed gives the first suppression that covers a finding and has not expired at a time; ok is false when none does.
func (f *File) Suppressed(s Subject, now time.Time) (suppression Suppression, ok bool) {
	for i := range f.suppressions {
		if now.Before(f.suppressions[i].Expires) && f.suppressions[i].Covers(s) {
			return f.suppressions[i], true
		}
	}
	return Suppression{}, false
}

// Split divides findings into those that stay, in their order, and those that a suppression covers at a time. Both
// slices are new.
func (f *File) Split(findings []stackmatch.Finding, now time.Time) (kept, suppressed []stackmatch.Finding) {
	for i := range findings {
		if _, ok := f.Suppressed(SubjectOf(&findings[i]), now); ok {
			suppressed = append(suppressed, findings[i])
		} else {
			kept = append(kept, findings[i])
		}
	}
	return kept, suppressed
}

// Covers reports whether the selectors fit a finding, whether or not the suppression has expired. Only suppressions of a
// [File] can have a regular expression.
func (s *Suppression) Covers(x Subject) bool {
	return fits(s.Rule, x.Rule) && fits(s.Category, x.Category) && fits(s.Controller, x.Controller) &&
		fits(s.Fingerprint, x.Fingerprint) && s.coversCulprit(x.Culprit)
}

func fits(want, got string) bool { return want == "" || want == got }

func (s *Suppression) coversCulprit(function string) bool {
	switch {
	case s.Culprit.Exact != "":
		return function == s.Culprit.Exact
	case s.Culprit.Prefix != "":
		return strings.HasPrefix(function, s.Culprit.Prefix)
	case s.Culprit.Regexp != "":
		return s.culprit != nil && s.culprit.MatchString(function)
	}
	return true
}

// checkSuppression sees that a suppression selects something and that somebody answers for it.
func (p *parser) checkSuppression(s *Suppression, path string) {
	for _, text := range []struct{ field, value, why string }{
		{"owner", s.Owner, "is missing: somebody must answer for a suppression"},
		{"reason", s.Reason, "is missing: say why the finding is all right for now"},
	} {
		if at := join(path, text.field); strings.TrimSpace(text.value) == "" && !p.wrongAt(at) {
			p.complain(at, "%s", text.why)
		}
	}
	if at := join(path, "expires"); s.Expires.IsZero() && !p.wrongAt(at) {
		p.complain(at, "is missing: a suppression is for a while, not for ever")
	}
	if s.Rule+s.Category+s.Controller+s.Fingerprint == "" && s.Culprit == (stackmatch.Pattern{}) && !p.wrongAt(path) {
		p.complain(path, "selects every finding: give rule, category, controller, culprit or fingerprint")
	}
	p.checkSelectors(s, path)
}

// checkSelectors sees that the rule exists and that the pattern can be used.
func (p *parser) checkSelectors(s *Suppression, path string) {
	if strings.HasPrefix(s.Rule, builtinPrefix) {
		if _, ok := p.builtins[s.Rule]; !ok {
			p.complain(join(path, "rule"), "no built-in rule has the id %q%s", shorten(s.Rule), suggest(s.Rule, p.ids()))
		}
	}
	at := join(path, "culprit")
	set := 0
	for _, text := range []string{s.Culprit.Exact, s.Culprit.Prefix, s.Culprit.Regexp} {
		if text != "" {
			set++
		}
	}
	if set > 1 {
		p.complain(at, "sets more than one of exact, prefix, regexp")
	}
	if s.Culprit.Regexp == "" {
		return
	}
	expression, err := regexp.Compile(s.Culprit.Regexp)
	if err != nil {
		p.complain(join(at, "regexp"), "%v", err)
		return
	}
	s.culprit = expression
}

// Expiry says since when a suppression no longer holds, and whom to ask: "suppression of GOR-505 by team-a expired on
// 2027-02-01: fixed in 1.4".
func (s *Suppression) Expiry() string {
	what := s.Rule
	for _, other := range []string{s.Category, s.Controller, s.Culprit.Exact, s.Culprit.Prefix, s.Culprit.Regexp, s.Fingerprint} {
		if what == "" {
			what = other
		}
	}
	return "suppression of " + what + " by " + s.Owner + " expired on " + s.Expires.Format(time.DateOnly) + ": " + s.Reason
}
