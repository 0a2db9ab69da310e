package main

import (
	"context"
	"errors"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

// runAnalyse analyses the dumps that are named, or the standard input.
func runAnalyse(ctx context.Context, args []string, env *environment) (int, error) {
	var s settings
	fs := newFlags("", "[flags] FILE...", env, &s)
	analysisFlags(fs, &s)
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
	analysis, err := stackmatch.Analyze(dumps, options)
	if err != nil {
		return exitTrouble, explain(err, len(dumps))
	}
	return finish(&report{Analysis: analysis, dumps: len(dumps)}, &s, env)
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
		r.suppress(s.file, time.Now())
	}
	if err := r.print(s, env); err != nil {
		return exitTrouble, err
	}
	if r.Verdict.Worse(stackmatch.VerdictBenign) {
		return exitFindings, nil
	}
	return exitClean, nil
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
