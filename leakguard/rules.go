package leakguard

import "github.com/leakguard/leakguard/stackmatch"

// Rules names known patterns, which gives findings their category, advice and row of the table of traps.
// *stackmatch.RuleSet implements it, and so does a rule file that is reloaded while the operator runs.
type Rules interface {
	// Match gives the first rule that a group of goroutines follows; in is made of all groups of the same sample. It is
	// called from the guard's goroutine, must not block, and is switched off when it panics.
	Match(group *stackmatch.Group, in *stackmatch.Context) (rule *stackmatch.Rule, ok bool)
}

// Suppressor is implemented by [Rules] that also know findings that somebody has taken on: those are listed, with the
// owner and the reason, and do not alarm.
type Suppressor interface {
	// Suppressed says who has taken on the finding of a rule and why; ok is false when nobody has, or no longer. It is called
	// like Match.
	Suppressed(rule, category, culprit, controller string) (owner, reason string, ok bool)
}
