package leakguard

import (
	"strings"

	"github.com/leakguard/leakguard/stackmatch"
)

// naming asks the rules what they know of the goroutines behind a signal, and gives the signal their advice.
type naming struct {
	rules  Rules
	main   string
	panics uint64
}

// newNaming takes the built-in rules when there are none.
func newNaming(rules Rules, main string) naming {
	if rules == nil {
		set, err := stackmatch.NewRuleSet(stackmatch.Builtin()...)
		if err == nil { // a test of stackmatch keeps it so
			rules = set
		}
	}
	return naming{rules: rules, main: main}
}

// name fills in the advice, the row of the table of traps and, when the code to fix is in no frame, the pattern's own
// name, always without type arguments. Signals that are only listed are not worth the look at all groups that it costs.
func (n *naming) name(signals map[string]*signal, groups []stackmatch.Group) {
	var in *stackmatch.Context
	for _, s := range signals {
		if s.pattern { // as the rules write it; the fingerprint is that of the name on the stack
			s.culprit.Function = strings.ReplaceAll(s.culprit.Function, "[...]", "")
		}
		if s.level < levelPending || n.rules == nil {
			continue
		}
		if s.sample != nil && in == nil {
			in = stackmatch.NewContext(groups, stackmatch.ContextOptions{Main: n.main})
		}
		n.one(s, in)
	}
}

// one names a signal, and lists it when somebody has said that it is known.
func (n *naming) one(s *signal, in *stackmatch.Context) {
	defer func() {
		if recover() != nil {
			n.panics++
			n.rules = nil
		}
	}()
	id := s.rule
	if rule, ok := n.match(s, in); ok {
		n.advise(s, rule)
		id = rule.ID
	}
	known, ok := n.rules.(Suppressor)
	if !ok {
		return
	}
	if owner, reason, ok := known.Suppressed(id, s.category, s.culprit.Function, s.controller); ok {
		s.level, s.tier = levelListed, TierListed
		s.reason += "; known to " + owner + ": " + reason
	}
}

// match gives the rule that a signal's goroutines follow, if it is one about leaks.
func (n *naming) match(s *signal, in *stackmatch.Context) (rule *stackmatch.Rule, ok bool) {
	if s.sample == nil {
		return nil, false
	}
	rule, ok = n.rules.Match(s.sample, in)
	return rule, ok && rule.VerdictFor(s.sample.Count, true) != stackmatch.VerdictBenign
}

// advise takes over what the rule knows.
func (n *naming) advise(s *signal, rule *stackmatch.Rule) {
	s.reason += "; " + rule.ID + ": " + rule.Title
	s.advice, s.trap = rule.Advice, rule.Trap
	if s.pattern && rule.Blame != "" {
		s.culprit.Function = rule.Blame
	}
}
