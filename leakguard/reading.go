package leakguard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// maxReported bounds the readings of a report, and with them the series of the metric leakguard_resource.
const maxReported = 256

// maxLabel bounds what is shown of a name that a probe gives, in bytes.
const maxLabel = 128

// Reading is one count of a probe as of the last tick, a finding or not.
type Reading struct {
	// Probe is the name of the probe, Resource what it counts: "http" counts "watches".
	Probe    string `json:"probe"`
	Resource string `json:"resource"`
	// Controller is the controller or other scope that the resource belongs to; empty when it is the process's.
	Controller string `json:"controller,omitempty"`
	// Count is how many there are.
	Count float64 `json:"count"`
	// Covariate is the number of things that explain Count, such as live objects; nil when unknown.
	Covariate *float64 `json:"covariate,omitempty"`
	// Leaked, Climbing, Bounded and Listed are the probe's judgement, see [probes.Reading]; mere counts have none of them.
	Leaked   bool `json:"leaked,omitempty"`
	Climbing bool `json:"climbing,omitempty"`
	Bounded  bool `json:"bounded,omitempty"`
	Listed   bool `json:"listed,omitempty"`
	// Culprit is where the resource was made; nil when unknown.
	Culprit *frame.Frame `json:"culprit,omitempty"`
	// Open is some of what is counted, at most 16 that are older than the grace: those whose work has ended first, then the
	// oldest. It is empty for what is not followed one by one.
	Open []Opened `json:"open,omitempty"`
}

// Opened is one thing that is open, such as a response body.
type Opened struct {
	// What says what it is for, without the names of objects: "GET deployments.apps/status", "watch pods by label app".
	What string `json:"what,omitempty"`
	// Controller is the controller or other scope it was opened in; empty when unknown.
	Controller string `json:"controller,omitempty"`
	// Ended is set when the reconcile or other work that opened it has ended.
	Ended bool `json:"ended,omitempty"`
	// AgeSeconds is how long it had been open.
	AgeSeconds float64 `json:"age_seconds"`
	// Culprit is the call to blame; nil when unknown.
	Culprit *frame.Frame `json:"culprit,omitempty"`
	// Stack is the calls that opened it, leaf first; nil when they were not taken, as of one in many harmless requests.
	Stack []frame.Frame `json:"stack,omitempty"`
}

// reported gives what a report shows of the probes' readings: ordered by probe, resource and controller, the largest first
// of those that share these, and at most maxReported. What a probe calls leaked, climbing or bounded is kept before mere
// counts. dropped is how many found no room or have a count that is no number.
func reported(readings []probes.Reading) (list []Reading, dropped int) {
	list = make([]Reading, 0, len(readings))
	for i := range readings {
		if count := readings[i].Count; !math.IsNaN(count) && !math.IsInf(count, 0) {
			list = append(list, newReading(&readings[i]))
		}
	}
	slices.SortStableFunc(list, func(a, b Reading) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.compare(&b))
	})
	list = slices.Clip(list[:min(len(list), maxReported)])
	slices.SortStableFunc(list, func(a, b Reading) int { return a.compare(&b) })
	return list, len(readings) - len(list)
}

func newReading(r *probes.Reading) Reading {
	out := Reading{
		Probe: label(r.Probe), Resource: label(r.Resource), Controller: label(r.Scope), Count: r.Count,
		Leaked: r.Leaked, Climbing: r.Climbing, Bounded: r.Bounded, Listed: r.Listed, Culprit: known(r.Culprit),
	}
	if r.Covariate >= 0 && !math.IsInf(r.Covariate, 0) { // also not NaN
		covariate := r.Covariate
		out.Covariate = &covariate
	}
	for i := range r.Open[:min(len(r.Open), maxOpened)] {
		o := &r.Open[i]
		out.Open = append(out.Open, Opened{
			What: label(o.What), Controller: label(o.Scope), Ended: o.Ended, AgeSeconds: o.Age.Seconds(), Culprit: known(o.Culprit), Stack: o.Stack,
		})
	}
	return out
}

// maxOpened bounds the open things that one reading names.
const maxOpened = 16

// known gives a frame, nil for none.
func known(f frame.Frame) *frame.Frame {
	if f.IsZero() {
		return nil
	}
	return &f
}

// label makes a name fit for a metric's label, which must be UTF-8 and of bounded length.
func label(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxLabel)], "") }

// rank orders readings by how much is said of them.
func (r *Reading) rank() int {
	for i, says := range [...]bool{r.Leaked, r.Climbing, r.Bounded, r.Listed} {
		if says {
			return i
		}
	}
	return 4
}

func (r *Reading) compare(other *Reading) int {
	return cmp.Or(cmp.Compare(r.Probe, other.Probe), cmp.Compare(r.Resource, other.Resource), cmp.Compare(r.Controller, other.Controller),
		cmp.Compare(other.Count, r.Count), cmp.Compare(r.position(), other.position()))
}

func (r *Reading) position() string { return position(r.Culprit) }

func position(culprit *frame.Frame) string {
	if culprit == nil {
		return ""
	}
	return culprit.String()
}

// judgement is what the probe says of the count: "leaked", "climbing", "bounded", "listed" or nothing.
func (r *Reading) judgement() string {
	return [...]string{"leaked", "climbing", "bounded", "listed", ""}[r.rank()]
}

// writeReadings writes the readings as a table for a person at a terminal.
func (r *Report) writeReadings(b *strings.Builder) {
	if len(r.Readings) == 0 {
		return
	}
	b.WriteString("\nresources:\n")
	for i := range r.Readings {
		x := &r.Readings[i]
		fmt.Fprintf(b, "  %-12s %-44s %-20s %10.6g", x.Probe, x.Resource, orDash(x.Controller), x.Count)
		if x.Covariate != nil {
			fmt.Fprintf(b, " of %.6g", *x.Covariate)
		}
		for _, word := range [...]string{x.judgement(), x.position()} {
			if word != "" {
				b.WriteString("  " + word)
			}
		}
		b.WriteByte('\n')
		for j := range x.Open {
			x.Open[j].writeText(b, x.Resource)
		}
	}
	if r.ReadingsDropped > 0 {
		fmt.Fprintf(b, "  and %d more\n", r.ReadingsDropped)
	}
}

func (o *Opened) writeText(b *strings.Builder, resource string) {
	b.WriteString("    " + cmp.Or(o.What, "one of the "+resource))
	if o.Controller != "" {
		b.WriteString(" of " + o.Controller)
	}
	fmt.Fprintf(b, ", open for %v", time.Duration(o.AgeSeconds*float64(time.Second)).Round(time.Second))
	if o.Ended {
		b.WriteString(", its work has ended")
	}
	if at := position(o.Culprit); at != "" {
		b.WriteString(", " + at)
	}
	b.WriteByte('\n')
}

// putReadings sums the readings over their labels, of which two may have the same.
func (d *descriptions) putReadings(put func(x description, v float64, labels ...string), readings []Reading) {
	type key struct{ probe, resource, controller string }
	sums := map[key]float64{}
	for i := range readings {
		sums[key{readings[i].Probe, readings[i].Resource, readings[i].Controller}] += readings[i].Count
	}
	for k, sum := range sums {
		put(d.resource, sum, k.probe, k.resource, k.controller)
	}
}
