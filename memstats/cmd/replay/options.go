package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

// options is what the flags say.
type options struct {
	output string
	replay memstats.ReplayOptions
	heap   memstats.HeapOptions
	named  []string // columns that flags name
}

// errUsage is any mistake in the arguments.
var errUsage = errors.New("usage")

func parseFlags(args []string, stderr io.Writer) (options, []string, error) {
	o := options{replay: memstats.ReplayOptions{Roles: map[string]memstats.Role{}, Bytes: memstats.ByteThresholds()}}
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		say(stderr, "usage: replay [flags] FILE…\nFILE is a series (CSV or JSON) or a heap profile (binary or debug=1), gzip or not; - is the standard input.\n"+
			"exit status: 0 benign, 1 findings, 2 bad usage or unreadable input\n")
		flags.PrintDefaults()
	}
	flags.StringVar(&o.output, "o", "text", "output: text, json or svg")
	flags.DurationVar(&o.replay.Every, "every", 0, "ask for a verdict every `duration` of the recording (default a 200th of it)")
	flags.DurationVar(&o.replay.Gap, "gap", 0, "forget all before a pause of this `duration` (default ten intervals, at least 30m)")
	flags.DurationVar(&o.heap.Every, "heap-every", 0, "`duration` between heap profiles that do not carry their time")
	flags.StringVar(&o.heap.Main, "main", "", "`path` of the operator's main module, to find its frames in heap profiles")
	flags.Float64Var(&o.replay.Counts.MinRise, "min-rise", 0, "least rise of counts (default 10, more for objects and seconds)")
	flags.Float64Var(&o.replay.Bytes.MinRise, "min-rise-bytes", o.replay.Bytes.MinRise, "least rise of bytes")
	maxP := flags.Float64("max-p", 0, "largest `probability` of chance (default 0.001)")
	warmUp := flags.Duration("warm-up", 0, "leave out this `duration` at the start (default 4m, negative for none)")
	limit := flags.String("limit", "", "memory limit, as `bytes` or like 512Mi, for the time that is left")
	roles := map[memstats.Role]*string{}
	for _, role := range []memstats.Role{memstats.RoleLoad, memstats.RoleWork, memstats.RoleCount, memstats.RoleBytes, memstats.RoleDerived} {
		name := role.String()
		if role == memstats.RoleDerived {
			name = "ignore"
		}
		roles[role] = flags.String(name, "", "`columns`, with commas between, to be taken as "+roleHelp(role))
	}
	if err := flags.Parse(args); err != nil {
		return o, nil, err
	}
	for _, t := range []*memstats.Thresholds{&o.replay.Counts, &o.replay.Bytes} {
		t.MaxP, t.WarmUp = *maxP, *warmUp
	}
	for role, list := range roles {
		o.setRole(role, *list)
	}
	return o, flags.Args(), errors.Join(o.check(flags.Args(), *limit), o.checkNumbers())
}

func roleHelp(role memstats.Role) string {
	switch role {
	case memstats.RoleLoad:
		return "load that may drive others"
	case memstats.RoleWork:
		return "counters of work done"
	case memstats.RoleBytes:
		return "memory to be judged"
	case memstats.RoleDerived:
		return "shown but not judged"
	default:
		return "numbers to be judged"
	}
}

func (o *options) setRole(role memstats.Role, list string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			o.replay.Roles[name] = role
			o.named = append(o.named, name)
		}
	}
}

// check looks at what [flag.Parse] does not.
func (o *options) check(files []string, limit string) error {
	if len(files) == 0 {
		return fmt.Errorf("%w: no FILE; -h prints help", errUsage)
	}
	for _, name := range files {
		if len(name) > 1 && name[0] == '-' {
			return fmt.Errorf("%w: %q behind a FILE: flags come first; write ./%s if it is a file", errUsage, name, name)
		}
	}
	if !slices.Contains([]string{"text", "json", "svg"}, o.output) {
		return fmt.Errorf("%w: -o %q is not text, json or svg", errUsage, o.output)
	}
	if limit == "" {
		return nil
	}
	bytes, err := parseBytes(limit)
	if err != nil {
		return fmt.Errorf("%w: -limit %q: %w", errUsage, limit, err)
	}
	o.replay.LimitBytes = bytes
	return nil
}

// checkNumbers looks at numbers that mean nothing.
func (o *options) checkNumbers() error {
	for name, d := range map[string]time.Duration{"every": o.replay.Every, "gap": o.replay.Gap, "heap-every": o.heap.Every} {
		if d < 0 {
			return fmt.Errorf("%w: -%s %v is negative", errUsage, name, d)
		}
	}
	for name, v := range map[string]float64{"min-rise": o.replay.Counts.MinRise, "min-rise-bytes": o.replay.Bytes.MinRise} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%w: -%s %v is no number", errUsage, name, v)
		}
	}
	if p := o.replay.Counts.MaxP; !(p >= 0 && p <= 1) {
		return fmt.Errorf("%w: -max-p %v is no probability from 0 to 1", errUsage, p)
	}
	return nil
}

// parseBytes reads "1073741824", "512Mi", "1Gi", "500M".
func parseBytes(s string) (uint64, error) {
	number := strings.TrimRight(s, "KMGTiB")
	factor, ok := map[string]float64{
		"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
	}[strings.TrimSuffix(s[len(number):], "B")]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(v > 0) || v*factor > math.MaxInt64 {
		return 0, errors.New("want a positive number of bytes such as 512Mi")
	}
	return uint64(v * factor), nil
}

// checkColumns wants every column that a flag names to exist.
func (o *options) checkColumns(t *memstats.Table) error {
	for _, name := range o.named {
		if !slices.Contains(t.Columns, name) {
			return fmt.Errorf("%w: no column is named %q; there are %s", errUsage, name, strings.Join(t.Columns, ", "))
		}
	}
	return nil
}
