package leaktest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Suppression says which goroutines a test may leave behind, and why. All fields that are set must fit; at least one of
// those that look at the goroutine must be set. Names are full, without arguments, and type arguments do not matter:
// "example.com/app.(*Server).loop".
type Suppression struct {
	// Reason says why it is no leak, or whose it is. It is required.
	Reason string
	// Until is when it expires; from then on the goroutines count again and the report says so. Zero means never.
	Until time.Time
	// Function is a function that is anywhere on the stack.
	Function string
	// Top is the innermost function: the one the dump prints first, or the first outside of the packages that do the waiting.
	Top string
	// Creator is the function that holds the go statement.
	Creator string
	// Package is the import path of the function that the goroutine was started for. Narrower is better.
	Package string
	// Regexp is a regular expression that matches the name of a function on the stack, or of the creator.
	Regexp string
	// Rule is the id of one of stackmatch's built-in rules, such as "GOR-401", or of an entry of [Pack].
	Rule string
	// WaitReason is the runtime's word for what it waits for: "chan receive".
	WaitReason string
}

// Ignore lets the goroutines pass that a suppression describes.
func Ignore(s Suppression) Option {
	return optionFunc(func(c *config) error {
		compiled, err := s.compile()
		if err != nil {
			return err
		}
		c.ignores = append(c.ignores, compiled)
		return nil
	})
}

// IgnoreFunction ignores goroutines with a function anywhere on their stack. It is Ignore with Function and Reason.
func IgnoreFunction(function, reason string) Option {
	return Ignore(Suppression{Function: function, Reason: reason})
}

// IgnoreCreator ignores goroutines whose go statement stands in a function.
func IgnoreCreator(function, reason string) Option {
	return Ignore(Suppression{Creator: function, Reason: reason})
}

// IgnoreRule ignores goroutines that a rule matches.
func IgnoreRule(id, reason string) Option {
	return Ignore(Suppression{Rule: id, Reason: reason})
}

// IgnoreTopFunction ignores goroutines with a function at the top of the stack. It is goleak's option of this name; prefer
// [Ignore], which asks for a reason.
func IgnoreTopFunction(function string) Option {
	return Ignore(Suppression{Top: function, Reason: "ignored by IgnoreTopFunction"})
}

// IgnoreAnyFunction ignores goroutines with a function anywhere on the stack. It is goleak's option of this name; prefer
// [Ignore], which asks for a reason.
func IgnoreAnyFunction(function string) Option {
	return Ignore(Suppression{Function: function, Reason: "ignored by IgnoreAnyFunction"})
}

// suppression is a checked Suppression.
type suppression struct {
	Suppression
	re      *regexp.Regexp
	rules   *stackmatch.RuleSet
	entry   *Entry
	expired bool
}

// builtinRules compiles stackmatch's rules once; only suppressions by rule and reports of leaks need them.
var builtinRules = sync.OnceValues(func() (*stackmatch.RuleSet, error) {
	return stackmatch.NewRuleSet(stackmatch.Builtin()...)
})

func (s Suppression) compile() (*suppression, error) {
	c := &suppression{Suppression: s}
	if strings.TrimSpace(s.Reason) == "" {
		return nil, fmt.Errorf("%w: Ignore(%+v): Reason is empty", ErrOption, s)
	}
	if s.Function+s.Top+s.Creator+s.Package+s.Regexp+s.Rule+s.WaitReason == "" {
		return nil, fmt.Errorf("%w: Ignore: only the reason %q is set, it would ignore everything", ErrOption, s.Reason)
	}
	if s.Regexp != "" {
		re, err := regexp.Compile(s.Regexp)
		if err != nil {
			return nil, fmt.Errorf("%w: Ignore: Regexp: %w", ErrOption, err)
		}
		c.re = re
	}
	if s.Rule != "" {
		if err := c.findRule(); err != nil {
			return nil, err
		}
	}
	c.expired = !s.Until.IsZero() && !time.Now().Before(s.Until)
	return c, nil
}

// findRule looks the rule up, first in the pack.
func (s *suppression) findRule() error {
	entries := Pack()
	if i := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == s.Rule }); i >= 0 {
		s.entry = &entries[i]
		return nil
	}
	all, err := builtinRules()
	if err != nil {
		return fmt.Errorf("leaktest: %w", err)
	}
	rule, ok := all.Rule(s.Rule)
	if !ok {
		return fmt.Errorf("%w: Ignore: Rule: there is no rule %q", ErrOption, s.Rule)
	}
	rule.Match.MinCount = 0 // one goroutine of a test is asked about at a time
	if s.rules, err = stackmatch.NewRuleSet(rule); err != nil {
		return fmt.Errorf("leaktest: %w", err)
	}
	return nil
}

// matches reports whether the suppression describes a goroutine, expired or not.
func (s *suppression) matches(g *stackmatch.Group) bool {
	switch {
	case s.Function != "" && !hasFunction(g.Stack, s.Function),
		s.Top != "" && !isTop(g.Stack, s.Top),
		s.Creator != "" && plain(g.CreatedBy.Function) != plain(s.Creator),
		s.Package != "" && frame.Package(frame.Root(g.Stack).Function) != s.Package,
		s.WaitReason != "" && s.WaitReason != g.WaitReason,
		s.re != nil && !s.matchesRegexp(g),
		s.entry != nil && !s.entry.matches(g):
		return false
	}
	if s.rules != nil {
		_, ok := s.rules.Match(g, stackmatch.NewContext([]stackmatch.Group{*g}, stackmatch.ContextOptions{}))
		return ok
	}
	return true
}

func (s *suppression) matchesRegexp(g *stackmatch.Group) bool {
	return s.re.MatchString(g.CreatedBy.Function) ||
		slices.ContainsFunc(g.Stack, func(f frame.Frame) bool { return s.re.MatchString(f.Function) })
}

// hasFunction reports whether a function is on a stack.
func hasFunction(stack []frame.Frame, function string) bool {
	function = plain(function)
	return slices.ContainsFunc(stack, func(f frame.Frame) bool { return plain(f.Function) == function })
}

// isTop reports whether a function is the innermost one, as printed or behind the packages that do the waiting.
func isTop(stack []frame.Frame, function string) bool {
	function = plain(function)
	for _, f := range stack {
		if plain(f.Function) == function {
			return true
		}
		if !waits(f.Function) {
			return false
		}
	}
	return false
}

// waits reports whether a function is part of how goroutines wait and says nothing about why.
func waits(function string) bool {
	switch frame.Package(function) {
	case "runtime", "sync", "internal/sync", "internal/poll", "reflect", "syscall", "internal/runtime/syscall", "internal/syscall/unix":
		return true
	}
	return function == "time.Sleep"
}

// plain takes the type arguments and a vendor folder off a function's name.
func plain(function string) string {
	if i := strings.LastIndex(function, "/vendor/"); i >= 0 {
		function = function[i+len("/vendor/"):]
	}
	if strings.Contains(function, "[...]") {
		function = strings.ReplaceAll(function, "[...]", "")
	}
	return function
}
