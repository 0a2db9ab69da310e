package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/leakguard/leakguard/examples/operator/apiserver"
	"github.com/leakguard/leakguard/examples/traps"
	"github.com/leakguard/leakguard/leakguard"
)

func printList(w io.Writer, asJSON bool) error {
	if asJSON {
		return encode(w, traps.All())
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	lines := []string{"NAME\tROW\tEXPECT\tWHAT HAPPENS"}
	for _, t := range traps.All() {
		lines = append(lines, strings.Join([]string{t.Name, orDash(t.Row), string(t.Expect), t.Title}, "\t"))
	}
	if _, err := io.WriteString(table, strings.Join(lines, "\n")+"\n"); err != nil {
		return err
	}
	return table.Flush()
}

func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printf prints text that --json leaves out.
func (o *operator) printf(format string, args ...any) {
	if !o.json {
		_, _ = fmt.Fprintf(o.stdout, format, args...) // a broken pipe must not end the run
	}
}

// printHeader says what is about to happen.
func (o *operator) printHeader() {
	o.printf("An operator with leakguard in it\n\n")
	o.printf("  API        %s\n", o.describeAPI())
	o.printf("  leak       %s\n", o.describeLeak())
	interval := time.Duration(o.scale * float64(leakguard.DefaultInterval)).Round(time.Millisecond)
	if o.scale == 1 {
		o.printf("  intervals  as the library has them: a sample every %v\n", interval)
	} else {
		o.printf("  intervals  all multiplied by %v, so that a demo need not last long: a sample every %v instead of %v (--scale=1 gives the library's own)\n",
			o.scale, interval, leakguard.DefaultInterval)
	}
	if o.metrics != "0" {
		o.printf("  metrics    http://%s/metrics\n  page       http://%s/debug/leakguard\n", o.metrics, o.metrics)
	}
	length := "until interrupted"
	if o.duration > 0 {
		length = o.duration.String()
	}
	o.printf("  duration   %s\n\n", length)
}

func (o *operator) describeAPI() string {
	switch o.api.Kind() {
	case apiserver.Memory:
		return fmt.Sprintf("in memory, in child process %d at %s (not a real kube-apiserver)", o.api.PID(), o.api.Config().Host)
	case apiserver.Envtest:
		return fmt.Sprintf("a real kube-apiserver and etcd, started by envtest in child process %d at %s", o.api.PID(), o.api.Config().Host)
	default:
		return "the cluster of the kubeconfig, at " + o.api.Config().Host
	}
}

func (o *operator) describeLeak() string {
	switch {
	case len(o.leaks) == 0:
		return "none"
	case o.twin:
		return "none: the clean twin of " + o.leak
	case len(o.leaks) == 1:
		return fmt.Sprintf("%s: %s", o.leak, o.leaks[0].Title)
	}
	return fmt.Sprintf("%d of them: %s", len(o.leaks), strings.Join(strings.Split(o.leak, ","), ", "))
}

// printChange says on one line that a finding is in another state.
func (o *operator) printChange(since time.Duration, f leakguard.Finding) {
	o.printf("%6.1fs  %-8s  %s\n", since.Seconds(), strings.ToUpper(string(f.State)), f.String())
}

// result is what --json prints.
type result struct {
	Leak                string             `json:"leak"`
	Twin                bool               `json:"twin"`
	API                 apiserver.Kind     `json:"api"`
	Go                  string             `json:"go"`
	Scale               float64            `json:"scale"`
	Seconds             float64            `json:"seconds"`
	ReconcilesPerSecond map[string]float64 `json:"reconciles_per_second"`
	Objects             bulkResult         `json:"objects"`
	Alarms              []string           `json:"alarms"`
	LogErrors           uint64             `json:"log_errors"`
	OK                  bool               `json:"ok"`
	Problem             string             `json:"problem,omitempty"`
	Traps               []trapResult       `json:"traps"`
	Report              *leakguard.Report  `json:"report"`
}

// trapResult is the part of a result about one trap.
type trapResult struct {
	Name   string       `json:"name"`
	Twin   bool         `json:"twin"`
	Expect traps.Expect `json:"expect"`
	Got    traps.Expect `json:"got"` // or pending, which no trap expects
	OK     bool         `json:"ok"`
	// PendingSeconds and FiringSeconds are from the start of the run until its finding was pending and fired; 0 is never.
	PendingSeconds float64 `json:"pending_seconds,omitempty"`
	FiringSeconds  float64 `json:"firing_seconds,omitempty"`
	// FiringSamples is how many samples the guard had taken when it fired. More than Trap.Deadline allows is a failure.
	FiringSamples uint64 `json:"firing_samples,omitempty"`
	// Rule carries the finding, and Count is what it counted, when it first fired, or else when it was last seen.
	Rule  string `json:"rule,omitempty"`
	Count int64  `json:"count,omitempty"`
	// Rollouts is how often the trap had leaked by then; 0 for one that does not work in reconciles.
	Rollouts int64 `json:"rollouts,omitempty"`
	// Peers is what --peers asks for.
	Peers *peersResult `json:"peers,omitempty"`
}

func (l *leak) result() trapResult {
	return trapResult{
		Name: l.Name, Twin: l.twin, Expect: l.expects(), Got: l.got(), OK: l.reached(), PendingSeconds: l.pending.Seconds(), FiringSeconds: l.firing.Seconds(),
		FiringSamples: l.samples, Rule: l.found.Rule, Count: l.found.Count, Rollouts: l.rolled, Peers: l.peers,
	}
}

// conclude prints the outcome and gives the verdict.
func (o *operator) conclude(j *judge) error {
	verdict := j.verdict()
	if !o.json {
		o.printFindings(j)
		return verdict
	}
	res := result{
		Leak: o.leak, Twin: o.twin, API: o.api.Kind(), Go: runtime.Version(), Scale: o.scale, Seconds: j.lasted.Seconds(), ReconcilesPerSecond: j.rates(1),
		Objects: o.load.bulk.done(),
		Alarms:  []string{}, Traps: []trapResult{}, LogErrors: o.logs.errors.Load(), OK: verdict == nil, Report: j.final,
	}
	for _, f := range j.alarms {
		res.Alarms = append(res.Alarms, f.String())
	}
	for _, l := range o.leaks {
		res.Traps = append(res.Traps, l.result())
	}
	if verdict != nil {
		res.Problem = verdict.Error()
	}
	return errors.Join(encode(o.stdout, res), verdict)
}

// printFindings prints every finding with its evidence, in a form to show to somebody.
func (o *operator) printFindings(j *judge) {
	r, rates := j.final, j.rates(1)
	o.printf("\nAfter %v, %.1f reconciles a second of controller app, ", j.lasted.Round(time.Second), rates["app"])
	for _, name := range o.leakyControllers() {
		o.printf("%.1f of controller %s, ", rates[name], name)
	}
	o.printf("%d goroutines: ", r.Goroutines)
	switch leaks := r.Firing(); leaks {
	case 0:
		o.printf("leakguard found no leak.\n")
	case 1:
		o.printf("leakguard found a leak.\n")
	default:
		o.printf("leakguard found %d leaks.\n", leaks)
	}
	for i := range r.Findings {
		o.printFinding(r, &r.Findings[i])
	}
	var seconds float64
	for _, l := range r.Sampling.Levels {
		seconds += l.Seconds
	}
	o.printf("\nleakguard itself took %d of %d due samples, in %.2f %% of the time.\n", r.Sampling.Taken, r.Sampling.Due, 100*seconds/j.lasted.Seconds())
	for _, l := range o.leaks {
		if l.peers != nil {
			o.printf("On %s goleak reports %d goroutines, and the runtime's goroutineleak profile %s.\n", l.Name, l.peers.Goleak, l.peers.proved())
		}
	}
	if n := o.logs.errors.Load(); n > 0 && !o.verbose {
		o.printf("The operator logged %d errors, the last one: %s (--verbose shows the log)\n", n, o.logs.last.Load())
	}
	for _, notice := range r.Notices {
		o.printf("notice: %s\n", notice)
	}
}

func (o *operator) printFinding(r *leakguard.Report, f *leakguard.Finding) {
	o.printf("\n  %s  controller=%s count=%d at %s\n", strings.ToUpper(string(f.State)), orDash(f.Controller), f.Count, position(f))
	line := func(name, text string) {
		if text != "" {
			o.printf("    %-8s %s\n", name, text)
		}
	}
	line("culprit", f.Culprit.Function)
	line("waits", f.WaitReason)
	line("rule", fmt.Sprintf("%s (%s, %s)", f.Rule, f.Tier, f.Category))
	line("why", f.Reason)
	line("advice", f.Advice)
	line("first", fmt.Sprintf("seen %.0f s after the start", f.FirstSeen.Sub(r.Started).Seconds()))
	if len(f.Stacks) > 0 {
		o.printf("    stack\n")
		for _, frame := range f.Stacks[0] {
			o.printf("      %s\n        %s\n", frame.Function, frame.Position())
		}
	}
}

func position(f *leakguard.Finding) string {
	if f.Culprit.File == "" {
		return "-"
	}
	return fmt.Sprintf("%s:%d", base(f.Culprit.File), f.Culprit.Line)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
