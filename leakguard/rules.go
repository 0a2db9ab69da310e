package leakguard

import "github.com/leakguard/leakguard/stackmatch"

// Rules names known patterns, which gives findings their category, advice and row of the table of traps.
// *stackmatch.RuleSet implements it, and so does a rule file that is reloaded while the operator runs.
type Rules interface {
	// Match gives the first rule that a group of goroutines follows; in is made of all groups of the same sample. It is
	// called from the guard's goroutine, must not block, and is switched off when it panics.
	Match(group *stackmatch.Group, in *stackmatch.Context) (rule *stackmatch.Rule, ok bool)
}
