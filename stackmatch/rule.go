package stackmatch

import (
	"time"
)

// Rule says what a group of goroutines with a certain stack means. It is data: a rule set compiles and checks it once
// ([NewRuleSet]), after which it is never changed.
type Rule struct {
	// ID names the rule for ever: "GOR-101". It is unique in a rule set and has no spaces.
	ID string `json:"id"`
	// Title is one line for people, without a full stop.
	Title string `json:"title"`
	// Severity is how soon somebody must act.
	Severity Severity `json:"severity"`
	// Categories are the kinds of trouble; a finding carries the first one.
	Categories []string `json:"categories"`
	// Doc explains in sentences what happens and how the rule tells it from the harmless twin.
	Doc string `json:"doc"`
	// Sources are the public reports, articles or runtime files that the rule rests on.
	Sources []string `json:"sources,omitempty"`
	// Advice is what to do about it.
	Advice string `json:"advice"`
	// Verdict is what one dump can say.
	Verdict Verdict `json:"verdict"`
	// Growing is the verdict once the group has grown between dumps; empty means Verdict. It is never milder than Verdict.
	Growing Verdict `json:"growing,omitempty"`
	// Enough is from how many goroutines on one dump is enough for Verdict: fewer are suspect, until they grow. It does not
	// count companions. 0 means any number.
	Enough int `json:"enough,omitempty"`
	// Trap is the row of the catalogue of measured traps that it belongs to, such as "S1-07"; empty when there is none.
	Trap string `json:"trap,omitempty"`
	// Blame is the function to name when the code to fix is in no frame of the main module: the pattern's own name.
	// Empty means that the group's culprit is named.
	Blame string `json:"blame,omitempty"`
	// Companions are the frames of goroutines that belong to the same thing as the matched ones and grow with them, such
	// as the writeLoop of each readLoop. A finding counts them in, and no other rule sees them.
	Companions []Pattern `json:"companions,omitempty"`
	// Match is what a group must look like.
	Match Match `json:"match"`
}

// Match is the conditions of a [Rule]. All of those that are set must hold; at least one other than the counts must be set.
type Match struct {
	// Frames must be found in the stack in this order, leaf first, with any number of frames between them.
	Frames []Pattern `json:"frames,omitempty"`
	// Without are frames that must not be on the stack.
	Without []Pattern `json:"without,omitempty"`
	// Leaf is the frame where the goroutine waits: the first outside the runtime, sync, internal/poll, reflect and time.
	Leaf Pattern `json:"leaf,omitzero"`
	// CreatedBy is the function with the go statement. A group whose creator is unknown, as in a profile, does not meet it.
	CreatedBy Pattern `json:"createdBy,omitzero"`
	// WaitReasons are wait reasons of which the group's must be one: "chan send", "select". An unknown reason, as in
	// debug=1 text, which does not print it, meets them only beside a Leaf.
	WaitReasons []string `json:"waitReasons,omitempty"`
	// MinWait is how long the oldest goroutine of the group must have waited at least. An unknown wait counts as none.
	MinWait time.Duration `json:"minWait,omitempty"`
	// MinCount and MaxCount bound the number of goroutines of the group, both inclusive; 0 means no bound.
	MinCount int `json:"minCount,omitempty"`
	MaxCount int `json:"maxCount,omitempty"`
	// Labels are goroutine labels that the group must have; an empty value means any.
	Labels map[string]string `json:"labels,omitempty"`
	// Predicate names a condition that looks at the other groups too; see [Predicates].
	Predicate string `json:"predicate,omitempty"`
	// When is a condition in code beside the data; nil means none. It is asked last, may be called concurrently, must be
	// fast and must not keep its arguments. The context may be nil.
	When func(group *Group, in *Context) bool `json:"-"`
}

// Pattern matches the name of a function. Exactly one of its fields is set; the zero Pattern matches nothing and means
// "not asked". Vendored copies and type arguments do not matter:
// "k8s.io/client-go/util/workqueue.(*delayingType).waitingLoop" matches
// "example.com/app/vendor/k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop" as well.
type Pattern struct {
	// Exact is the whole name.
	Exact string `json:"exact,omitempty"`
	// Prefix is how the name begins; "net/http.(*Client).do" matches its closures too.
	Prefix string `json:"prefix,omitempty"`
	// Regexp is a regular expression (package regexp) that matches somewhere in the name.
	Regexp string `json:"regexp,omitempty"`
}

// Exact gives the pattern for one function.
func Exact(function string) Pattern { return Pattern{Exact: function} }

// Prefix gives the pattern for functions whose name begins so.
func Prefix(start string) Pattern { return Pattern{Prefix: start} }

// Regexp gives the pattern for functions whose name a regular expression matches.
func Regexp(expression string) Pattern { return Pattern{Regexp: expression} }

// VerdictFor gives the rule's verdict on a number of goroutines that have, or have not, grown between dumps.
func (r *Rule) VerdictFor(count int, grown bool) Verdict {
	if grown && r.Growing != "" {
		return r.Growing
	}
	if !grown && count < r.Enough && r.Verdict == VerdictLeak {
		return VerdictSuspect
	}
	return r.Verdict
}

// undecided reports whether a dump without growth, beside one with as many goroutines, clears the suspicion of one dump.
func (r *Rule) undecided(count int) bool {
	return r.VerdictFor(count, false) == VerdictSuspect && (r.Growing != "" || r.Enough > 0)
}

// isZero reports whether the pattern is not set.
func (p Pattern) isZero() bool { return p == Pattern{} }

// category is the kind that a finding of the rule carries.
func (r *Rule) category() string {
	if len(r.Categories) == 0 {
		return ""
	}
	return r.Categories[0]
}
