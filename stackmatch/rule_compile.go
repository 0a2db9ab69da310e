package stackmatch

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// ErrRule is what every complaint about a rule wraps: it is wrong data, found when the rule set is built.
var ErrRule = errors.New("stackmatch: invalid rule")

// RuleError says which field of which rule is wrong and why.
type RuleError struct {
	// Rule is the rule's id, or its place in the list ("rule 3") when it has none.
	Rule string
	// Field is the field as its author wrote it in JSON or YAML: "match.frames[1].regexp".
	Field string
	// Reason says what is wrong.
	Reason string
}

// Error gives "stackmatch: invalid rule GOR-101: match.frames[1].regexp: missing closing )".
func (e *RuleError) Error() string {
	return fmt.Sprintf("%v %s: %s: %s", ErrRule, e.Rule, e.Field, e.Reason)
}

// Unwrap gives [ErrRule].
func (e *RuleError) Unwrap() error { return ErrRule }

// compiledPattern is a Pattern made ready to match names that plainName has treated.
type compiledPattern struct {
	exact, prefix string
	expression    *regexp.Regexp
	number        int // of the expression in its rule set
}

func (p *compiledPattern) isZero() bool {
	return p.exact == "" && p.prefix == "" && p.expression == nil
}

// match reports whether the pattern matches a function.
func (p *compiledPattern) match(n *name) bool {
	switch {
	case p.exact != "":
		return n.plain == p.exact
	case p.prefix != "":
		return strings.HasPrefix(n.plain, p.prefix)
	case p.expression != nil:
		return n.hits.has(p.number)
	}
	return false
}

// compiledRule is a rule with its patterns ready.
type compiledRule struct {
	rule       *Rule
	frames     []compiledPattern
	without    []compiledPattern
	companions []compiledPattern
	leaf       compiledPattern
	createdBy  compiledPattern
	predicate  func(group *Group, in *Context) bool
	// byExpression is the number of the expression under which the rule is filed; -1 when it is filed elsewhere.
	byExpression int
}

// compiler collects what is wrong with one rule.
type compiler struct {
	name string
	errs []error
}

func (c *compiler) wrong(field, format string, args ...any) {
	c.errs = append(c.errs, &RuleError{Rule: c.name, Field: field, Reason: fmt.Sprintf(format, args...)})
}

// compileRule makes a rule ready; place is its place in the list, from 1, for rules without an id.
func compileRule(rule *Rule, place int) (compiledRule, error) {
	c := compiler{name: rule.ID}
	if rule.ID == "" {
		c.name = fmt.Sprintf("rule %d", place)
		c.wrong("id", "is empty")
	} else if strings.ContainsAny(rule.ID, " \t\r\n") {
		c.wrong("id", "%q has a space", rule.ID)
	}
	c.checkTexts(rule)
	c.checkVerdicts(rule)
	if rule.Enough < 0 {
		c.wrong("enough", "%d is negative", rule.Enough)
	}
	c.checkBounds(&rule.Match)
	c.checkWords(&rule.Match)
	out := compiledRule{
		rule:       rule,
		frames:     c.patterns("match.frames", rule.Match.Frames),
		without:    c.patterns("match.without", rule.Match.Without),
		companions: c.patterns("companions", rule.Companions),
		leaf:       c.optional("match.leaf", rule.Match.Leaf),
		createdBy:  c.optional("match.createdBy", rule.Match.CreatedBy),
	}
	if name := rule.Match.Predicate; name != "" {
		p, ok := predicateNamed(name)
		if !ok {
			c.wrong("match.predicate", "unknown predicate %q, known are %s", name, strings.Join(predicateNames(), ", "))
		}
		out.predicate = p.holds
	}
	return out, errors.Join(c.errs...)
}

// checkTexts sees that a rule explains itself.
func (c *compiler) checkTexts(rule *Rule) {
	for _, text := range []struct{ field, value string }{
		{"title", rule.Title}, {"doc", rule.Doc}, {"advice", rule.Advice},
	} {
		if strings.TrimSpace(text.value) == "" {
			c.wrong(text.field, "is empty: a rule must say what it means")
		}
	}
	if len(rule.Categories) == 0 {
		c.wrong("categories", "is empty")
	}
	for i, category := range rule.Categories {
		if strings.TrimSpace(category) == "" {
			c.wrong(fmt.Sprintf("categories[%d]", i), "is empty")
		}
	}
}

// checkVerdicts sees that severity and verdicts are known words in a sensible order.
func (c *compiler) checkVerdicts(rule *Rule) {
	if !rule.Severity.Valid() {
		c.wrong("severity", "%q is none of info, warning, critical", rule.Severity)
	}
	if !rule.Verdict.Valid() {
		c.wrong("verdict", "%q is none of benign, suspect, leak", rule.Verdict)
	}
	if rule.Growing != "" && !rule.Growing.Valid() {
		c.wrong("growing", "%q is none of benign, suspect, leak", rule.Growing)
	}
	if rule.Growing.Valid() && rule.Verdict.Worse(rule.Growing) {
		c.wrong("growing", "%q is milder than verdict %q", rule.Growing, rule.Verdict)
	}
}

// checkBounds sees that a match asks for something and that its numbers can be met.
func (c *compiler) checkBounds(m *Match) {
	if m.MinCount < 0 {
		c.wrong("match.minCount", "%d is negative", m.MinCount)
	}
	if m.MaxCount < 0 {
		c.wrong("match.maxCount", "%d is negative", m.MaxCount)
	}
	if m.MaxCount > 0 && m.MinCount > m.MaxCount {
		c.wrong("match.minCount", "%d is above maxCount %d: no group can have both", m.MinCount, m.MaxCount)
	}
	if m.MinWait < 0 {
		c.wrong("match.minWait", "%v is negative", m.MinWait)
	}
	if !m.asks() {
		c.wrong("match", "is empty: it would match every group")
	}
}

// checkWords sees that wait reasons and labels are not empty.
func (c *compiler) checkWords(m *Match) {
	for i, reason := range m.WaitReasons {
		if strings.TrimSpace(reason) == "" {
			c.wrong(fmt.Sprintf("match.waitReasons[%d]", i), "is empty")
		}
	}
	if _, ok := m.Labels[""]; ok {
		c.wrong("match.labels", "has an empty key")
	}
}

// asks reports whether a match has a condition beside the counts.
func (m *Match) asks() bool {
	return len(m.Frames) > 0 || !m.Leaf.isZero() || !m.CreatedBy.isZero() || len(m.WaitReasons) > 0 ||
		m.MinWait > 0 || len(m.Labels) > 0 || m.Predicate != "" || m.When != nil
}

// patterns compiles a list of patterns, each of which must be set.
func (c *compiler) patterns(field string, in []Pattern) []compiledPattern {
	out := make([]compiledPattern, 0, len(in))
	for i, p := range in {
		place := fmt.Sprintf("%s[%d]", field, i)
		if p.isZero() {
			c.wrong(place, "is empty: one of exact, prefix, regexp must be set")
			continue
		}
		out = append(out, c.optional(place, p))
	}
	return slices.Clip(out)
}

// optional compiles a pattern that may be zero.
func (c *compiler) optional(field string, p Pattern) compiledPattern {
	set := 0
	for _, s := range []string{p.Exact, p.Prefix, p.Regexp} {
		if s != "" {
			set++
		}
	}
	if set > 1 {
		c.wrong(field, "sets more than one of exact, prefix, regexp")
		return compiledPattern{}
	}
	out := compiledPattern{exact: plainName(p.Exact), prefix: plainName(p.Prefix)}
	if p.Regexp != "" {
		expression, err := regexp.Compile(p.Regexp)
		if err != nil {
			c.wrong(field+".regexp", "%v", err)
			return compiledPattern{}
		}
		out.expression = expression
	}
	return out
}

// plainName removes what must not matter in a function's name: the place where a module is vendored and type arguments.
// It allocates only for names that have either.
func plainName(function string) string {
	function = unvendored(function)
	open := strings.IndexByte(function, '[')
	if open < 0 {
		return function
	}
	out := make([]byte, 0, len(function))
	depth := 0
	for i := range len(function) {
		switch b := function[i]; {
		case b == '[':
			depth++
		case b == ']' && depth > 0:
			depth--
		case depth == 0:
			out = append(out, b)
		}
	}
	return string(out)
}

// unvendored removes the place where a module is vendored from a function's name.
func unvendored(function string) string {
	for _, mark := range []string{"/vendor/", "/Godeps/_workspace/src/"} {
		if !strings.Contains(function, mark) {
			continue
		}
		if i := strings.LastIndex(function, mark); i < len(frame.Package(function)) {
			function = function[i+len(mark):]
		}
	}
	return function
}
