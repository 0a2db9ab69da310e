package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// The exit codes.
const (
	exitClean    = 0
	exitMisuse   = 2
	exitLeak     = 10
	exitKnown    = 11
	exitUnstable = 12
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the arguments of both commands.
type options struct {
	page         page
	memory       string
	suppressions string
	artifacts    string
	junit        string
	pprof        string
	state        string
	answer       time.Duration
	wait         time.Duration
}

func (o *options) register(f *flag.FlagSet) {
	f.StringVar(&o.page.url, "url", "http://127.0.0.1:8080/debug/leakguard", "the operator's leakguard page")
	f.StringVar(&o.page.tokenFile, "token-file", "", "file with a bearer token for the page")
	f.StringVar(&o.page.caFile, "ca-file", "", "file with the certificates that the page's TLS certificate is checked against")
	f.StringVar(&o.memory, "memory", "leakguard-e2e.json", "file that before writes and after reads")
	f.StringVar(&o.suppressions, "suppressions", "", "YAML file of known leaks, each with an owner and a date")
	f.StringVar(&o.artifacts, "artifacts", "", "folder for the report and the dumps of a leak")
	f.StringVar(&o.junit, "junit", "", "JUnit XML file to write")
	f.StringVar(&o.pprof, "pprof", "", "the operator's pprof address, such as http://127.0.0.1:8082/debug/pprof, to keep a dump and profiles from")
	f.StringVar(&o.state, "state", "firing", "the state from which a finding is a leak: firing or pending")
	f.DurationVar(&o.answer, "answer", 30*time.Second, "how long to wait for an answer")
	f.DurationVar(&o.wait, "wait", 3*time.Minute, "how long after waits for pending findings to be decided")
}

// errUsage is what ends the command with exitMisuse.
var errUsage = errors.New("e2ehook: wrong usage")

// run is the command without the process around it.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	code, err := dispatch(ctx, args, getenv, stdout, stderr)
	if err != nil {
		say(stderr, "%v\n", err)
	}
	return code
}

func dispatch(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) (int, error) {
	if len(args) == 0 || args[0] != "before" && args[0] != "after" {
		return exitMisuse, fmt.Errorf("%w: the first argument is before or after", errUsage)
	}
	var o options
	flags := flag.NewFlagSet("e2ehook "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.register(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return exitMisuse, nil //nolint:nilerr // the flag set has said it
	}
	if flags.NArg() > 0 {
		return exitMisuse, fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	}
	if o.state != "firing" && o.state != "pending" {
		return exitMisuse, fmt.Errorf("%w: -state %q is neither firing nor pending", errUsage, o.state)
	}
	if args[0] == "before" {
		return before(ctx, &o, stdout)
	}
	return after(ctx, &o, getenv, stdout)
}

// before remembers what the operator says now.
func before(ctx context.Context, o *options, stdout io.Writer) (int, error) {
	report, err := o.page.await(ctx, o.answer, func(r *report) bool { return !r.At.IsZero() })
	if errors.Is(err, errNoAnswer) {
		report = nil // after must not take an older file for the answer
		if werr := writeJSON(o.memory, report); werr != nil {
			return exitMisuse, werr
		}
	}
	if err != nil {
		return unanswered(err, o, nil, stdout)
	}
	if err := writeJSON(o.memory, report); err != nil {
		return exitMisuse, err
	}
	say(stdout, "e2ehook: before the suite: %d findings, %d goroutines\n", len(report.Findings), report.Goroutines)
	return exitClean, nil
}

// after judges what is new.
func after(ctx context.Context, o *options, getenv func(string) string, stdout io.Writer) (int, error) {
	known, err := readSuppressions(o.suppressions)
	if err != nil {
		return exitMisuse, err
	}
	was, err := readReport(o.memory)
	if err != nil {
		return exitMisuse, fmt.Errorf("%w: the report of before: %w", errUsage, err)
	}
	annotate := annotator(getenv, stdout)
	if was.At.IsZero() {
		return unanswered(fmt.Errorf("%w: the operator did not answer before the suite", errNoAnswer), o, annotate, stdout)
	}
	now, err := o.decided(ctx, was)
	if err != nil {
		return unanswered(err, o, annotate, stdout)
	}
	if !now.Started.Equal(was.Started) {
		return unanswered(fmt.Errorf("e2ehook: the operator was restarted during the suite: it runs since %s, not %s", now.Started, was.Started), o, annotate, stdout)
	}
	v := judge(was, now, known, o.state, time.Now())
	v.print(stdout)
	v.annotate(annotate)
	if o.junit != "" {
		if err := writeJUnit(o.junit, v.cases()); err != nil {
			return exitMisuse, err
		}
	}
	if v.code() == exitLeak && o.artifacts != "" {
		if err := o.keep(ctx, now); err != nil {
			say(stdout, "e2ehook: not all artefacts could be kept: %v\n", err)
		}
	}
	return v.code(), nil
}

// decided waits for a sample that was taken after the suite and in which nothing new is pending, at most the time of -wait;
// then what is pending stays so.
func (o *options) decided(ctx context.Context, was *report) (*report, error) {
	end := time.Now()
	fresh := func(r *report) bool { return r.At.After(end) }
	first, err := o.page.await(ctx, o.answer, func(r *report) bool { return fresh(r) || !r.Started.Equal(was.Started) })
	if err != nil || !first.Started.Equal(was.Started) {
		return first, err
	}
	settled := func(r *report) bool { return !hasNewPending(was, r) }
	if settled(first) || o.wait <= 0 {
		return first, nil
	}
	last, err := o.page.await(ctx, o.wait, settled)
	if errors.Is(err, errNoAnswer) && last != nil {
		return last, nil
	}
	return last, err
}

// unanswered marks a run without a verdict.
func unanswered(err error, o *options, annotate func(level string, a annotation), stdout io.Writer) (int, error) {
	if errors.Is(err, errUsage) {
		return exitMisuse, err
	}
	say(stdout, "e2ehook: unstable: %v\n", err)
	if annotate != nil {
		annotate("warning", annotation{title: "leak check unstable", text: err.Error()})
	}
	if o.junit != "" {
		if werr := writeJUnit(o.junit, []testCase{{Name: "leak check", Class: "leakguard", Skipped: &message{Message: "unstable: " + err.Error()}}}); werr != nil {
			return exitMisuse, werr
		}
	}
	return exitUnstable, nil
}
