package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/leakguard/leakguard/stackmatch"
)

// runRules lists the built-in rules or explains one.
func runRules(_ context.Context, args []string, env *environment) (int, error) {
	var s settings
	fs := newFlags("rules", "[-explain ID] [-o json]", env, &s)
	fs.StringVar(&s.explain, "explain", "", "`id` of the rule to explain")
	names, err := parse(fs, args, &s)
	if err != nil {
		return exitTrouble, err
	}
	if len(names) > 0 {
		fs.Usage()
		return exitTrouble, errUsage
	}
	rules := stackmatch.Builtin()
	if s.explain != "" {
		rules = only(rules, s.explain)
		if len(rules) == 0 {
			return exitTrouble, fmt.Errorf("stackmatch: no built-in rule %q; stackmatch rules lists them", s.explain)
		}
	}
	switch {
	case s.output == "json":
		encoder := json.NewEncoder(env.stdout)
		encoder.SetIndent("", "  ")
		return exitClean, encoder.Encode(rules)
	case s.explain != "":
		return exitClean, explainRule(&rules[0], env)
	}
	return exitClean, listRules(rules, s.output == "markdown", env)
}

// only gives the rule with an id.
func only(rules []stackmatch.Rule, id string) []stackmatch.Rule {
	for i := range rules {
		if strings.EqualFold(rules[i].ID, id) {
			return rules[i : i+1]
		}
	}
	return nil
}

// listRules prints a table of the rules in their order.
func listRules(rules []stackmatch.Rule, markdown bool, env *environment) error {
	var b strings.Builder
	if markdown {
		b.WriteString("| id | verdict | category | title |\n| --- | --- | --- | --- |\n")
		for _, r := range rules {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.ID, verdicts(&r), r.Categories[0], r.Title)
		}
		return write(env, b.String())
	}
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	for _, r := range rules {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.ID, verdicts(&r), r.Categories[0], r.Title) // into memory
	}
	_ = w.Flush() // into memory
	return write(env, b.String())
}

// verdicts says what one dump and what growth makes of a rule.
func verdicts(r *stackmatch.Rule) string {
	if r.Enough > 0 {
		return fmt.Sprintf("%s (from %d on)", r.Verdict, r.Enough)
	}
	if r.Growing == "" || r.Growing == r.Verdict {
		return string(r.Verdict)
	}
	return fmt.Sprintf("%s (growing: %s)", r.Verdict, r.Growing)
}

// explainRule prints all that a rule says of itself.
func explainRule(r *stackmatch.Rule, env *environment) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", r.ID, r.Title)
	fmt.Fprintf(&b, "verdict   %s\nseverity  %s\ncategory  %s\n", verdicts(r), r.Severity, strings.Join(r.Categories, ", "))
	if r.Trap != "" {
		fmt.Fprintf(&b, "trap      %s\n", r.Trap)
	}
	fmt.Fprintf(&b, "\n%s\n\nWhat to do: %s\n", r.Doc, r.Advice)
	match, err := json.MarshalIndent(r.Match, "  ", "  ")
	if err != nil {
		return fmt.Errorf("stackmatch: %w", err)
	}
	fmt.Fprintf(&b, "\nMatches when:\n  %s\n", match)
	if name := r.Match.Predicate; name != "" {
		for _, p := range stackmatch.Predicates() {
			if p.Name == name {
				fmt.Fprintf(&b, "\nPredicate %s: %s\n", p.Name, p.Doc)
			}
		}
	}
	if len(r.Sources) > 0 {
		fmt.Fprintf(&b, "\nSources: %s\n", strings.Join(r.Sources, ", "))
	}
	return write(env, b.String())
}

// write prints to the standard output.
func write(env *environment, text string) error {
	if _, err := fmt.Fprint(env.stdout, text); err != nil {
		return fmt.Errorf("stackmatch: writing: %w", err)
	}
	return nil
}
