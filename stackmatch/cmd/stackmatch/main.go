// Command stackmatch reads goroutine dumps and says what is wrong with the process: which goroutines leak, why, and
// which function to fix.
//
// # Usage
//
//	stackmatch [flags] FILE...           analyse a dump, or several dumps of one process in the order they were taken
//	stackmatch diff [flags] OLD NEW...   what changed between dumps, and what it means
//	stackmatch watch [flags] URL         take dumps of a running process at intervals and analyse them together
//	stackmatch rules [-explain ID]       list the built-in rules, or explain one
//	stackmatch check [flags] FILE...     check rule files
//
// A FILE is the text of [runtime.Stack], of a crash or of the goroutine profile (debug=1, debug=2), the profile as a protocol
// buffer, any of them compressed or inside log lines; the form is found by looking at the bytes. "-" is the standard
// input, which is also read when it is a pipe and no FILE is named. A URL (http:// or https://) is that of a process with
// net/http/pprof, such as a port-forwarded operator's: http://localhost:6060. Flags come before the files.
// With -rules FILE the rules and suppressions of a rule file apply; suppressed findings are left out, and expired
// suppressions and conditions that fail are told of on the standard error. -every 10m says how far apart several FILEs
// were taken: it gives the growth per hour, and slopes to the conditions of a rule file.
//
// The exit status is 0 when nothing was found, 1 for a leak or a suspect, 2 for bad usage or input that cannot be read.
//
// # JSON
//
// With -o json the output is one object:
//
//	{
//	  "verdict":    "leak" | "suspect" | "benign",
//	  "goroutines": number of goroutines in the last dump,
//	  "findings":   [ finding, ... ] the worst first,
//	  "errors":     [ {"line": number, "message": string}, ... ] what could not be read
//	}
//
// and a finding is
//
//	{
//	  "schema":      1,
//	  "fingerprint": 16 hexadecimal digits, equal for equal category, culprit and controller,
//	  "rule":        id of the rule, see stackmatch rules,
//	  "category":    kind of trouble,
//	  "verdict":     "leak" | "suspect" | "benign",
//	  "severity":    "critical" | "warning" | "info",
//	  "controller":  name of the controller; only when the goroutines carry leakguard's label,
//	  "count":       goroutines that are lost or in doubt,
//	  "per_hour":    growth; 0 when unknown,
//	  "wait_reason": what they wait for; only when known,
//	  "culprit":     {"function": string, "file": string, "line": number},
//	  "first_seen", "last_seen": times of the dumps; only from watch,
//	  "reason", "advice": sentences,
//	  "trap":        row of the catalogue of measured traps; only when there is one,
//	  "stacks":      up to three stacks, each a list of frames, leaf first
//	}
//
// diff adds "changes": [ {"function", "wait_reason", "counts": [number for each dump], "trend", "stack"}, ... ].
//
// # Cost
//
// A dump is read as a stream; what is kept are the goroutines and their distinct stacks, about 120 bytes for each
// goroutine. Taking a dump from a URL stops that process for as long as writing its stacks takes: 50 to 400
// milliseconds at 10,000 goroutines. With watch -light it is not stopped, but minutes and creators are missing.
//
// # Limits
//
// One dump often cannot tell one goroutine per object from a leak: give a second dump, or the number of live objects
// with -objects.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// The exit statuses.
const (
	exitClean    = 0
	exitFindings = 1
	exitTrouble  = 2
)

// errUsage is bad usage that has been explained already.
var errUsage = errors.New("bad usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], &environment{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv,
		piped: isPipe(os.Stdin), terminal: isTerminal(os.Stdout),
	})
	stop()
	os.Exit(status)
}

// environment is what the command touches of the outside.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	// piped says that the standard input is a pipe or a file, terminal that the standard output is a person's screen.
	piped, terminal bool
}

// command is a subcommand. It returns the exit status; an error is printed and makes it 2.
type command struct {
	name, arguments, summary string
	run                      func(ctx context.Context, args []string, env *environment) (int, error)
}

// commands are the subcommands; what is none of them is a file for analyse.
func commands() []command {
	return []command{
		{"diff", "[flags] OLD NEW [NEWER...]", "what changed between dumps of one process, and what it means", runDiff},
		{"watch", "[flags] URL", "take dumps of a running process at intervals and analyse them together", runWatch},
		{"check", "[-schema] [-o json] FILE...", "check rule files, their suppressions included", runCheck},
		{"rules", "[-explain ID] [-o json]", "list the built-in rules, or explain one", runRules},
	}
}

// run is the command without the process around it.
func run(ctx context.Context, args []string, env *environment) int {
	start := runAnalyse
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				start, args = c.run, args[1:]
				break
			}
		}
	}
	status, err := start(ctx, args, env)
	if err == nil {
		return status
	}
	if !errors.Is(err, errUsage) {
		// There is nothing to be done when even this cannot be written.
		_, _ = fmt.Fprintln(env.stderr, message(err))
	}
	return exitTrouble
}

// isPipe reports whether a file is not a terminal and can have input.
func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// isTerminal reports whether a file is a person's screen.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
