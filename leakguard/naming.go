package leakguard

import (
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
// name. Signals that are only listed are not worth the look at all groups that it costs.
func (n *naming) name(signals map[string]*signal, groups []stackmatch.Group) {
	var in *stackmatch.Context
	for _, s := range signals {
		if s.sample == nil || s.level < levelPending || n.rules == nil {
			continue
		}
		if in == nil {
			in = stackmatch.NewContext(groups, stackmatch.ContextOptions{Main: n.main})
		}
		n.one(s, in)
	}
}

func (n *naming) one(s *signal, in *stackmatch.Context) {
	defer func() {
		if recover() != nil {
			n.panics++
			n.rules = nil
		}
	}()
	rule, ok := n.rules.Match(s.sample, in)
	if !ok || rule.Verdict == stackmatch.VerdictBenign {
		return
	}
	s.reason += "; " + rule.ID + ": " + rule.Title
	s.advice, s.trap = rule.Advice, rule.Trap
	if s.pattern && rule.Blame != "" {
		s.culprit.Function = rule.Blame
	}
}
