package rulefile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/leakguard/leakguard/stackmatch"
)

// schemaVersion is the version of the form of rule files.
const schemaVersion = 1

// parser checks what a decoder has read.
type parser struct {
	decoder

	document   document
	builtins   map[string]stackmatch.Rule
	conditions map[string]*condition
}

// seedRule starts a rule that has the id of a built-in one with what that one says, so that a file need only say what it
// wants to be different.
func (p *parser) seedRule(n *node, element reflect.Value) {
	e, ok := reflect.TypeAssert[*entry](element.Addr())
	if !ok {
		return
	}
	n = resolve(n)
	for i := 0; n.Kind == mappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "id" {
			e.Rule = p.builtins[resolve(n.Content[i+1]).Value]
			return
		}
	}
}

// check checks the document.
func (p *parser) check() {
	if p.document.Schema != schemaVersion && !p.wrongAt("schema") {
		p.complain("schema", "must be %d, the version of the form of this file", schemaVersion)
	}
	for _, list := range []struct {
		field string
		n     int
	}{{"rules", len(p.document.Rules)}, {"suppressions", len(p.document.Suppressions)}} {
		if list.n > MaxRules {
			p.complain(list.field, "has %d entries, more than %d", list.n, MaxRules)
			return
		}
	}
	p.nameRules()
	p.checkIDs()
	p.checkDisabled()
	p.checkConditions()
	p.checkRules()
	for i := range p.document.Suppressions {
		s := &p.document.Suppressions[i]
		path := fmt.Sprintf("suppressions[%d]", i)
		s.Line = p.place(path).Line
		p.checkSuppression(s, path)
	}
}

// complain notes a problem of the value at a path.
func (p *parser) complain(path, format string, args ...any) {
	p.wrong(p.place(path), path, format, args...)
}

// complainRule notes a problem of a field of a rule.
func (p *parser) complainRule(i int, field, format string, args ...any) {
	p.complainBelow(i, field, 0, format, args...)
}

// complainBelow notes a problem that stands some lines below the beginning of a field of a rule.
func (p *parser) complainBelow(i int, field string, lines int, format string, args ...any) {
	path := join(rulePath(i), field)
	n := p.place(path)
	e := &Error{File: p.file, Line: n.Line + lines, Column: n.Column, Field: path, Reason: fmt.Sprintf(format, args...)}
	p.name(e)
	p.note(e)
}

func rulePath(i int) string { return fmt.Sprintf("rules[%d]", i) }

// nameRules gives the problems inside of rules, which so far have their path only, the id of the rule.
func (p *parser) nameRules() {
	for _, e := range p.problems {
		p.name(e)
	}
}

// name turns the path "rules[2].title" of a problem into the rule's id and "title".
func (p *parser) name(e *Error) {
	var i int
	if n, err := fmt.Sscanf(e.Field, "rules[%d]", &i); n != 1 || err != nil {
		return
	}
	e.Rule = p.ruleName(i)
	e.Field = strings.TrimPrefix(strings.TrimPrefix(e.Field, rulePath(i)), ".")
}

// ruleName is the id of a rule, or "rule 3" when it has none.
func (p *parser) ruleName(i int) string {
	if i < len(p.document.Rules) && p.document.Rules[i].ID != "" {
		return shorten(p.document.Rules[i].ID)
	}
	return fmt.Sprintf("rule %d", i+1)
}

// wrongAt reports whether a problem of a path, or below it, is known already.
func (p *parser) wrongAt(path string) bool {
	return slices.ContainsFunc(p.problems, func(e *Error) bool {
		rest, ok := strings.CutPrefix(e.Field, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// wrongRule reports whether a problem of a rule is known already.
func (p *parser) wrongRule(i int) bool {
	name := p.ruleName(i)
	return slices.ContainsFunc(p.problems, func(e *Error) bool { return e.Rule == name })
}

// checkIDs sees that each id is used once and that only built-in rules have ids like theirs.
func (p *parser) checkIDs() {
	seen := make(map[string]int, len(p.document.Rules))
	for i := range p.document.Rules {
		id := p.document.Rules[i].ID
		if id == "" {
			continue // stackmatch says so
		}
		if first, dup := seen[id]; dup {
			p.complainRule(i, "id", "is used twice: also on line %d", p.place(join(rulePath(first), "id")).Line)
			continue
		}
		seen[id] = i
		if _, known := p.builtins[id]; !known && strings.HasPrefix(id, builtinPrefix) {
			p.complainRule(i, "id", "begins as those of the built-in rules do, and no built-in rule has it%s", suggest(id, p.ids()))
		}
	}
}

// ids lists the ids of the built-in rules.
func (p *parser) ids() []string {
	out := make([]string, 0, len(p.builtins))
	for id := range p.builtins {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// checkDisabled sees that what is switched off exists: a typing mistake would leave the rule on.
func (p *parser) checkDisabled() {
	known := p.ids()
	for i := range p.document.Rules {
		known = append(known, p.document.Rules[i].ID)
	}
	for i, id := range p.document.Disabled {
		if !slices.Contains(known, id) {
			p.complain(fmt.Sprintf("disabled[%d]", i), "no rule has the id %q%s", shorten(id), suggest(id, known))
		}
	}
}

// checkConditions compiles the conditions.
func (p *parser) checkConditions() {
	var c *compiler
	p.conditions = make(map[string]*condition)
	for i := range p.document.Rules {
		e := &p.document.Rules[i]
		if strings.TrimSpace(e.When) == "" {
			if _, given := p.places[join(rulePath(i), "when")]; given && !p.wrongRule(i) {
				p.complainRule(i, "when", "is empty")
			}
			continue
		}
		if c == nil {
			var err error
			if c, err = newCompiler(); err != nil {
				p.complainRule(i, "when", "%v", err)
				return
			}
		}
		compiled, problems := c.compile(e.ID, e.When)
		for _, problem := range problems {
			lines := problem.lineIn(resolve(p.place(join(rulePath(i), "when"))))
			p.complainBelow(i, "when", lines, "%s", problem.reason)
		}
		p.conditions[e.ID] = compiled
	}
}

// checkRules lets stackmatch check the rules that could be read.
func (p *parser) checkRules() {
	for i := range p.document.Rules {
		if p.wrongRule(i) {
			continue
		}
		rule := p.document.Rules[i].Rule
		if p.conditions[rule.ID] != nil {
			rule.Match.When = func(*stackmatch.Group, *stackmatch.Context) bool { return true }
		}
		_, err := stackmatch.NewRuleSet(rule)
		problems := ruleErrors(err)
		for _, e := range problems {
			if e.Field == "match" && slices.ContainsFunc(problems, isInsideMatch) {
				continue // it is empty only because what it has is wrong
			}
			p.complainRule(i, e.Field, "%s", e.Reason)
		}
	}
}

func isInsideMatch(e *stackmatch.RuleError) bool { return strings.HasPrefix(e.Field, "match.") }

// ruleErrors takes an error of stackmatch apart.
func ruleErrors(err error) []*stackmatch.RuleError {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*stackmatch.RuleError
		for _, err := range many.Unwrap() {
			out = append(out, ruleErrors(err)...)
		}
		return out
	}
	if one, ok := errors.AsType[*stackmatch.RuleError](err); ok {
		return []*stackmatch.RuleError{one}
	}
	return nil
}
