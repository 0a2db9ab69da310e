package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

// runAnalyse analyses the dumps that are named, or the standard input.
func runAnalyse(ctx context.Context, args []string, env *environment) (int, error) {
	var s settings
	fs := newFlags("", "[flags] FILE...", env, &s)
	analysisFlags(fs, &s)
	everyFlag(fs, &s)
	names, err := parse(fs, args, &s)
	if err != nil {
		return exitTrouble, err
	}
	if len(names) == 0 {
		if !env.piped {
			fs.Usage()
			return exitTrouble, errUsage
		}
		names = []string{"-"}
	}
	options, err := s.options()
	if err != nil {
		return exitTrouble, err
	}
	in := input{env: env, s: &s}
	dumps, err := in.readAll(ctx, names)
	if err != nil {
		return exitTrouble, err
	}
	analysis, err := analyse(dumps, options, &s)
	if err != nil {
		return exitTrouble, err
	}
	return finish(&report{Analysis: analysis, dumps: len(dumps)}, &s, env)
}

// analyse analyses dumps that were taken before. With -every their distances are known, but not when they were taken.
func analyse(dumps []*stackmatch.Dump, options stackmatch.Options, s *settings) (stackmatch.Analysis, error) {
	if s.every > 0 {
		for i := range dumps {
			options.Times = append(options.Times, time.Unix(0, 0).Add(time.Duration(i)*s.every))
		}
	}
	analysis, err := stackmatch.Analyze(dumps, options)
	if err != nil {
		return analysis, explain(err, len(dumps))
	}
	for i := range analysis.Findings {
		analysis.Findings[i].FirstSeen, analysis.Findings[i].LastSeen = time.Time{}, time.Time{}
	}
	return analysis, nil
}

// explain says an error of the options in the words of the flags.
func explain(err error, dumps int) error {
	var option *stackmatch.OptionError
	if errors.As(err, &option) && option.Field == "Objects" {
		return &objectsError{dumps: dumps}
	}
	return err
}

// objectsError says that -objects does not fit the dumps.
type objectsError struct{ dumps int }

func (e *objectsError) Error() string {
	return "stackmatch: -objects must have one number for each dump, that is " + plural(e.dumps, "number")
}

// finish prints a report and gives the exit status.
func finish(r *report, s *settings, env *environment) (int, error) {
	if s.file != nil {
		now := time.Now()
		r.suppress(s.file, now)
		remark(s, env, now)
	}
	if err := r.print(s, env); err != nil {
		return exitTrouble, err
	}
	if r.Verdict.Worse(stackmatch.VerdictBenign) {
		return exitFindings, nil
	}
	return exitClean, nil
}

// remark says on the standard error what is wrong with a rule file in use: suppressions that no longer hold, and
// conditions that could not be evaluated.
func remark(s *settings, env *environment, now time.Time) {
	for _, x := range s.file.Expired(now) {
		_, _ = fmt.Fprintf(env.stderr, "stackmatch: %s:%d: %s\n", s.rules, x.Line, x.Expiry()) // a remark only
	}
	for _, err := range s.failed.all() {
		_, _ = fmt.Fprintln(env.stderr, message(err)) // a remark only
	}
}

// suppress leaves out the findings that a rule file suppresses, and takes the verdict of the rest.
func (r *report) suppress(file *rulefile.File, now time.Time) {
	kept, suppressed := file.Split(r.Findings, now)
	r.Findings, r.suppressed = append([]stackmatch.Finding{}, kept...), len(suppressed)
	r.Verdict = stackmatch.VerdictBenign
	for i := range kept {
		if kept[i].Verdict.Worse(r.Verdict) {
			r.Verdict = kept[i].Verdict
		}
	}
}
