package main

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

// settings are the flags that the subcommands share.
type settings struct {
	output  string
	main    string
	objects []int
	off     []string
	timeout time.Duration
	color   string
	quiet   bool
	all     bool
	explain string
	rules   string
	every   time.Duration  // between the dumps; 0 when unknown
	file    *rulefile.File // what rules names; nil for none
	failed  *failures      // conditions of file that could not be evaluated; nil without a file
}

// failures notes conditions that could not be evaluated, once for each rule.
type failures struct {
	mu sync.Mutex
	// The fields below are guarded by mu.
	errs  []error
	rules map[string]bool
}

// note notes a failure.
func (f *failures) note(rule string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.rules[rule] {
		f.rules[rule] = true
		f.errs = append(f.errs, err)
	}
}

// all gives the failures in the order in which they happened.
func (f *failures) all() []error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.errs)
}

// newFlags makes the flag set of a subcommand with the flags that all of them have.
func newFlags(name, arguments string, env *environment, s *settings) *flag.FlagSet {
	fs := flag.NewFlagSet("stackmatch "+name, flag.ContinueOnError)
	fs.SetOutput(env.stderr)
	fs.StringVar(&s.output, "o", "text", "output `form`: text, json or markdown")
	fs.Usage = func() {
		_, _ = fmt.Fprintf(env.stderr, "usage: stackmatch %s %s\n", name, arguments)
		fs.PrintDefaults()
		if name == "" {
			_, _ = fmt.Fprintln(env.stderr, "subcommands:")
			for _, c := range commands() {
				_, _ = fmt.Fprintf(env.stderr, "  stackmatch %s %s\n    \t%s\n", c.name, c.arguments, c.summary)
			}
		}
	}
	return fs
}

// analysisFlags adds the flags of the subcommands that analyse.
func analysisFlags(fs *flag.FlagSet, s *settings) {
	fs.StringVar(&s.main, "main", "", "`path` of the program's main module, whose frames are blamed first (default: guessed from the dump)")
	fs.Func("objects", "live objects at the time of each dump, `n[,n...]`, so that one goroutine for each is no leak", s.setObjects)
	fs.StringVar(&s.rules, "rules", "", "rule `file` whose rules and suppressions apply (see stackmatch check)")
	fs.Func("off", "`ids` of rules to switch off, separated by commas", func(v string) error {
		s.off = append(s.off, strings.Split(v, ",")...)
		return nil
	})
	fs.DurationVar(&s.timeout, "timeout", 30*time.Second, "how long a URL may take to answer in full")
	fs.StringVar(&s.color, "color", "auto", "colour: auto, always or never; NO_COLOR is honoured by auto")
	fs.BoolVar(&s.quiet, "q", false, "no progress on the standard error")
	fs.BoolVar(&s.all, "all", false, "show what was found harmless too")
}

// everyFlag adds the flag that says how far apart dumps are that were taken before.
func everyFlag(fs *flag.FlagSet, s *settings) {
	fs.Func("every", "`time` between two dumps, such as 10m: gives the growth per hour, and slopes to the conditions of -rules", func(v string) error {
		every, err := time.ParseDuration(v)
		if err != nil || every <= 0 {
			return fmt.Errorf("%q is no time above zero", v)
		}
		s.every = every
		return nil
	})
}

// setObjects reads "400,1000".
func (s *settings) setObjects(v string) error {
	s.objects = nil
	for field := range strings.SplitSeq(v, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 0 {
			return fmt.Errorf("%q is no number of objects", field)
		}
		s.objects = append(s.objects, n)
	}
	return nil
}

// parse parses flags before, between and behind the arguments; after "--" all is arguments.
func parse(fs *flag.FlagSet, args []string, s *settings) ([]string, error) {
	var names, rest []string
	for i, arg := range args {
		if arg == "--" {
			args, rest = args[:i], args[i+1:]
			break
		}
	}
	for {
		if err := fs.Parse(args); err != nil {
			return nil, errUsage // the flag set has said why
		}
		if fs.NArg() == 0 {
			break
		}
		names = append(names, fs.Arg(0))
		args = fs.Args()[1:]
	}
	switch s.output {
	case "text", "json", "markdown":
	default:
		return nil, fmt.Errorf("stackmatch: -o %q is none of text, json, markdown", s.output)
	}
	switch s.color {
	case "", "auto", "always", "never":
	default:
		return nil, fmt.Errorf("stackmatch: -color %q is none of auto, always, never", s.color)
	}
	return append(names, rest...), nil
}

// options makes the options of the analysis.
func (s *settings) options() (stackmatch.Options, error) {
	base := stackmatch.Builtin()
	if s.rules != "" {
		file, err := rulefile.Load(s.rules)
		if err != nil {
			return stackmatch.Options{}, err
		}
		s.failed = &failures{rules: make(map[string]bool)}
		set, err := file.RuleSet(rulefile.Options{Failed: s.failed.note})
		if err != nil {
			return stackmatch.Options{}, err
		}
		base, s.file = set.Rules(), file
	}
	rules, err := stackmatch.Override(base, nil, s.off...)
	if err != nil {
		return stackmatch.Options{}, err
	}
	set, err := stackmatch.NewRuleSet(rules...)
	if err != nil {
		return stackmatch.Options{}, err
	}
	return stackmatch.Options{Main: s.main, Objects: s.objects, Rules: set}, nil
}

// paint reports whether the text output has colours.
func (s *settings) paint(env *environment) bool {
	switch s.color {
	case "always":
		return true
	case "never":
		return false
	}
	return env.terminal && env.getenv("NO_COLOR") == "" && env.getenv("TERM") != "dumb"
}
