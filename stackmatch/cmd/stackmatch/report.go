package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// report is what a subcommand prints.
type report struct {
	stackmatch.Analysis
	// Changes is nil for a report that compares nothing.
	Changes *[]stackmatch.Change `json:"changes,omitempty"`
	dumps   int
	// suppressed is how many findings a rule file has left out.
	suppressed int
}

// print writes the report in the form that the user asked for.
func (r *report) print(s *settings, env *environment) error {
	switch s.output {
	case "json":
		encoder := json.NewEncoder(env.stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("stackmatch: writing: %w", err)
		}
		return nil
	case "markdown":
		return write(env, r.markdown(s))
	}
	return write(env, r.text(s, palette{on: s.paint(env)}))
}

// palette colours words, or does not.
type palette struct{ on bool }

func (p palette) paint(code, text string) string {
	if !p.on {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p palette) bold(text string) string { return p.paint("1", text) }
func (p palette) dim(text string) string  { return p.paint("2", text) }

func (p palette) verdict(v stackmatch.Verdict) string {
	switch v {
	case stackmatch.VerdictLeak:
		return p.paint("1;31", strings.ToUpper(string(v)))
	case stackmatch.VerdictSuspect:
		return p.paint("1;33", strings.ToUpper(string(v)))
	case stackmatch.VerdictBenign:
	}
	return p.paint("32", string(v))
}

// maxFrames is how many frames of a stack the text shows.
const maxFrames = 12

// text is the report for a terminal.
func (r *report) text(s *settings, p palette) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s in %s\n", p.verdict(r.Verdict), plural(r.Goroutines, "goroutine"), of(r.dumps))
	harmless := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict == stackmatch.VerdictBenign && !s.all {
			harmless++
			continue
		}
		r.textFinding(&b, f, p)
	}
	if harmless > 0 {
		fmt.Fprintf(&b, "\n%s\n", p.dim(plural(harmless, "harmless finding")+" not shown (-all shows them)"))
	}
	if r.suppressed > 0 {
		fmt.Fprintf(&b, "\n%s\n", p.dim(plural(r.suppressed, "finding")+" suppressed by the rule file"))
	}
	r.textChanges(&b, p)
	for i, e := range r.Errors {
		if i == 0 {
			fmt.Fprintf(&b, "\n%s\n", p.bold("not read:"))
		}
		fmt.Fprintf(&b, "  line %d: %s\n", e.Line, e.Message)
	}
	return b.String()
}

// of says of how many dumps the report is.
func of(dumps int) string {
	if dumps == 1 {
		return "one dump"
	}
	return fmt.Sprintf("the last of %d dumps", dumps)
}

// textFinding writes one finding.
func (r *report) textFinding(b *strings.Builder, f *stackmatch.Finding, p palette) {
	fmt.Fprintf(b, "\n%s %s  %s, %s, %s\n", p.verdict(f.Verdict), p.bold(f.Category), plural(int(f.Count), "goroutine"), f.Rule, f.Severity)
	if place := f.Culprit.Position(); place != "" {
		fmt.Fprintf(b, "  culprit  %s\n           %s\n", p.bold(f.Culprit.Function), place)
	} else {
		fmt.Fprintf(b, "  culprit  %s\n", p.bold(f.Culprit.Function))
	}
	if f.Controller != "" {
		fmt.Fprintf(b, "  controller %s\n", f.Controller)
	}
	fmt.Fprintf(b, "  why      %s\n", f.Reason)
	if f.PerHour > 0 {
		fmt.Fprintf(b, "  growth   about %.3g an hour\n", f.PerHour)
	}
	fmt.Fprintf(b, "  what now %s\n", f.Advice)
	if len(f.Stacks) > 0 {
		reason := f.WaitReason
		if reason == "" {
			reason = "?"
		}
		fmt.Fprintf(b, "  stack    [%s]\n", reason)
		for i, fr := range f.Stacks[0] {
			if i == maxFrames {
				fmt.Fprintf(b, "           %s\n", p.dim("... "+plural(len(f.Stacks[0])-i, "frame")+" more"))
				break
			}
			fmt.Fprintf(b, "           %s %s\n", fr.Function, p.dim(fr.Position()))
		}
	}
}

// maxChanges is how many changes the text shows.
const maxChanges = 20

// textChanges writes the table of changes.
func (r *report) textChanges(b *strings.Builder, p palette) {
	if r.Changes == nil {
		return
	}
	fmt.Fprintf(b, "\n%s\n", p.bold("changes between the dumps:"))
	if len(*r.Changes) == 0 {
		b.WriteString("  none\n")
	}
	for i, c := range *r.Changes {
		if i == maxChanges {
			fmt.Fprintf(b, "  ... %d more\n", len(*r.Changes)-i)
			break
		}
		fmt.Fprintf(b, "  %-10s %-24s %s [%s]\n", c.Trend, counts(c.Counts), c.Function, c.WaitReason)
	}
	if r.dumps == 2 {
		fmt.Fprintf(b, "  %s\n", p.dim("two dumps cannot tell a staircase from a burst: a third one can"))
	}
}

// counts writes "66 -> 412"; of many the first and the last few.
func counts(n []int) string {
	parts := make([]string, 0, len(n))
	for i, c := range n {
		if len(n) > 8 && i == 3 {
			parts = append(parts, "...")
		}
		if len(n) <= 8 || i < 3 || i >= len(n)-4 {
			parts = append(parts, strconv.Itoa(c))
		}
	}
	return strings.Join(parts, " -> ")
}

// plural writes "1 goroutine" and "2 goroutines".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// markdown is the report for an issue.
func (r *report) markdown(s *settings) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Goroutines: %s\n\n%s in %s.\n", r.Verdict, plural(r.Goroutines, "goroutine"), of(r.dumps))
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict == stackmatch.VerdictBenign && !s.all {
			continue
		}
		fmt.Fprintf(&b, "\n### %s: %s (%s)\n\n", f.Verdict, f.Category, f.Rule)
		fmt.Fprintf(&b, "- culprit: `%s`%s\n- count: %d\n- why: %s\n- what to do: %s\n", f.Culprit.Function, inPlace(f.Culprit), f.Count, f.Reason, f.Advice)
		if f.PerHour > 0 {
			fmt.Fprintf(&b, "- growth: about %.3g an hour\n", f.PerHour)
		}
		for _, stack := range f.Stacks {
			b.WriteString("\n```\n")
			for _, fr := range stack {
				fmt.Fprintf(&b, "%s\n\t%s\n", fr.Function, fr.Position())
			}
			b.WriteString("```\n")
		}
	}
	if r.Changes != nil {
		b.WriteString("\n### Changes\n\n| trend | counts | function | wait |\n| --- | --- | --- | --- |\n")
		for _, c := range *r.Changes {
			fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", c.Trend, counts(c.Counts), c.Function, c.WaitReason)
		}
	}
	if len(r.Errors) > 0 {
		fmt.Fprintf(&b, "\nNot read: %s.\n", plural(len(r.Errors), "place"))
	}
	return b.String()
}

// inPlace writes where a culprit stands.
func inPlace(f frame.Frame) string {
	if p := f.Position(); p != "" {
		return " at `" + p + "`"
	}
	return ""
}
