package main

import (
	"context"

	"github.com/leakguard/leakguard/stackmatch"
)

// runDiff compares dumps.
func runDiff(ctx context.Context, args []string, env *environment) (int, error) {
	var s settings
	fs := newFlags("diff", "[flags] OLD NEW [NEWER...]", env, &s)
	analysisFlags(fs, &s)
	everyFlag(fs, &s)
	names, err := parse(fs, args, &s)
	if err != nil {
		return exitTrouble, err
	}
	if len(names) < 2 {
		fs.Usage()
		return exitTrouble, errUsage
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
	changes := stackmatch.Changes(dumps, s.main)
	return finish(&report{Analysis: analysis, Changes: &changes, dumps: len(dumps)}, &s, env)
}
