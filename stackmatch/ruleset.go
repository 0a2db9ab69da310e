package stackmatch

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"regexp"
	"slices"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// RuleSet is a checked, compiled and indexed list of rules. The first rule that matches wins, so the order is part of
// the meaning: special rules stand before general ones.
//
// A RuleSet is immutable, but for a memory of at most 8,192 functions that it has seen: all methods may be called
// concurrently. The nil and the zero RuleSet have no rules.
type RuleSet struct {
	rules []compiledRule
	byID  map[string]int
	// byFunction and byPackage give the rules that can only match a stack with that function, or a function of that
	// package; always has the rest. Each list is ascending.
	byFunction, byPackage map[string][]int
	always                bitset
	expressions           []*regexp.Regexp
	table                 nameTable
}

// NewRuleSet checks and compiles rules. All that is wrong is reported together; each complaint is a [*RuleError] that
// names the rule and the field: unknown predicate, missing texts, duplicate id, bad regular expression, empty match.
// The rules are copied.
func NewRuleSet(rules ...Rule) (*RuleSet, error) {
	s := &RuleSet{byID: make(map[string]int, len(rules))}
	var errs []error
	for i := range rules {
		rule := rules[i].clone()
		compiled, err := compileRule(&rule, i+1)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if first, dup := s.byID[rule.ID]; dup {
			errs = append(errs, &RuleError{
				Rule: rule.ID, Field: "id", Reason: fmt.Sprintf("is used twice: also by %q", s.rules[first].rule.Title),
			})
			continue
		}
		s.byID[rule.ID] = len(s.rules)
		s.rules = append(s.rules, compiled)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s.index()
	return s, nil
}

// Override gives the rules of base with changes applied: a change with the id of a rule of base takes its place, any
// other comes before all of base in the order given (first match wins); the rules named by off are left out. An id in
// off that no rule has is an error, since a typing mistake would leave the rule on.
func Override(base, changes []Rule, off ...string) ([]Rule, error) {
	out := make([]Rule, 0, len(base)+len(changes))
	replaced := make(map[string]Rule, len(changes))
	known := make(map[string]bool, len(base)+len(changes))
	for _, r := range base {
		known[r.ID] = true
	}
	for _, r := range changes {
		if known[r.ID] {
			replaced[r.ID] = r
		} else {
			out = append(out, r)
		}
	}
	for _, r := range changes {
		known[r.ID] = true
	}
	for _, r := range base {
		if change, ok := replaced[r.ID]; ok {
			r = change
		}
		out = append(out, r)
	}
	var errs []error
	for _, id := range off {
		if !known[id] {
			errs = append(errs, &RuleError{Rule: id, Field: "off", Reason: "no rule has this id"})
		}
	}
	out = slices.DeleteFunc(out, func(r Rule) bool { return slices.Contains(off, r.ID) })
	return out, errors.Join(errs...)
}

// Len is the number of rules.
func (s *RuleSet) Len() int {
	if s == nil {
		return 0
	}
	return len(s.rules)
}

// Rules gives copies of the rules in their order.
func (s *RuleSet) Rules() []Rule {
	if s == nil {
		return nil
	}
	out := make([]Rule, len(s.rules))
	for i := range s.rules {
		out[i] = s.rules[i].rule.clone()
	}
	return out
}

// Rule gives a copy of the rule with an id; ok is false when there is none.
func (s *RuleSet) Rule(id string) (rule Rule, ok bool) {
	if s == nil {
		return Rule{}, false
	}
	i, ok := s.byID[id]
	if !ok {
		return Rule{}, false
	}
	return s.rules[i].rule.clone(), true
}

// Match gives the first rule that matches a group; ok is false when none does. in is what the predicates see: the other
// groups of the same dump or profile ([NewContext]); with nil all predicates fail. The rule belongs to the set: do not
// change it. Match looks only at rules whose functions are on the stack, so its cost does not grow with the set.
func (s *RuleSet) Match(group *Group, in *Context) (rule *Rule, ok bool) {
	c := s.match(group, in)
	if c == nil {
		return nil, false
	}
	return c.rule, true
}

// match is Match on compiled rules.
func (s *RuleSet) match(group *Group, in *Context) *compiledRule {
	if s == nil || len(s.rules) == 0 {
		return nil
	}
	var buffer [64]*name
	names := s.appendInfo(buffer[:0], group.Stack)
	creator := s.info(group.CreatedBy.Function)
	var words [16]uint64
	candidates := s.candidates(words[:0], names, creator)
	for w, word := range candidates {
		for ; word != 0; word &= word - 1 {
			c := &s.rules[w*64+bits.TrailingZeros64(word)]
			if c.match(group, names, creator, in) {
				return c
			}
		}
	}
	return nil
}

// appendNames appends the plain names of a stack.
func appendNames(names []string, stack []frame.Frame) []string {
	for i := range stack {
		names = append(names, plainName(stack[i].Function))
	}
	return names
}

// match reports whether a rule matches a group whose functions are given. The cheap conditions come first.
func (c *compiledRule) match(group *Group, names []*name, creator *name, in *Context) bool {
	m := &c.rule.Match
	if !m.bounds(group) || !c.reasonMatches(group.WaitReason) || !c.creatorMatches(creator) {
		return false
	}
	if !c.leafMatches(names) || !inOrder(c.frames, names) || anyMatches(c.without, names) {
		return false
	}
	if !labelsMatch(m.Labels, group) {
		return false
	}
	if c.predicate != nil && (in == nil || !c.predicate(group, in)) {
		return false
	}
	return m.When == nil || m.When(group, in)
}

// bounds reports whether a group has as many goroutines, and one that waits as long, as is asked for.
func (m *Match) bounds(group *Group) bool {
	return group.Count >= m.MinCount && (m.MaxCount == 0 || group.Count <= m.MaxCount) && (m.MinWait == 0 || group.Oldest >= m.MinWait)
}

// leafMatches reports whether the first function that does not itself wait is the one that the rule asks for, if it does.
func (c *compiledRule) leafMatches(names []*name) bool {
	if c.leaf.isZero() {
		return true
	}
	i := slices.IndexFunc(names, func(n *name) bool { return !n.waits })
	return i >= 0 && c.leaf.match(names[i])
}

// labelsMatch reports whether a group has all wanted labels.
func labelsMatch(wanted map[string]string, group *Group) bool {
	for key, want := range wanted {
		got, ok := group.Label(key)
		if !ok || want != "" && got != want {
			return false
		}
	}
	return true
}

// reasonMatches reports whether a wait reason is one of the rule's.
func (c *compiledRule) reasonMatches(reason string) bool {
	wanted := c.rule.Match.WaitReasons
	if len(wanted) == 0 || slices.Contains(wanted, reason) {
		return true
	}
	return reason == "" && !c.leaf.isZero()
}

// creatorMatches reports whether the creator is the one that the rule asks for, if it does.
func (c *compiledRule) creatorMatches(creator *name) bool {
	return c.createdBy.isZero() || creator != nil && c.createdBy.match(creator)
}

// inOrder reports whether all patterns are met by functions in that order, with gaps.
func inOrder(patterns []compiledPattern, names []*name) bool {
	next := 0
	for i := 0; next < len(patterns) && i < len(names); i++ {
		if patterns[next].match(names[i]) {
			next++
		}
	}
	return next == len(patterns)
}

// anyMatches reports whether one of the patterns matches one of the functions.
func anyMatches(patterns []compiledPattern, names []*name) bool {
	for i := range patterns {
		if slices.ContainsFunc(names, patterns[i].match) {
			return true
		}
	}
	return false
}

// leafIndex is the index of the frame where a goroutine waits: the first outside the packages that do the waiting; -1
// when there is none.
func leafIndex(names []string) int {
	for i, name := range names {
		if !waitsItself(name) {
			return i
		}
	}
	return -1
}

// waitsItself reports whether a function is part of how goroutines wait and says nothing about why.
func waitsItself(name string) bool {
	switch frame.Package(name) {
	case "", "runtime", "sync", "internal/sync", "internal/poll", "reflect", "syscall", "internal/runtime/syscall", "internal/syscall/unix":
		return true
	}
	return name == "time.Sleep"
}

// clone copies a rule with all that it points to.
func (r *Rule) clone() Rule {
	c := *r
	c.Categories = slices.Clone(r.Categories)
	c.Sources = slices.Clone(r.Sources)
	c.Companions = slices.Clone(r.Companions)
	c.Match.Frames = slices.Clone(r.Match.Frames)
	c.Match.Without = slices.Clone(r.Match.Without)
	c.Match.WaitReasons = slices.Clone(r.Match.WaitReasons)
	c.Match.Labels = maps.Clone(r.Match.Labels)
	return c
}

// minutes makes a duration of whole minutes.
func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }
