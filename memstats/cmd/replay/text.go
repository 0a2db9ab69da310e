package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

// writeText prints the verdicts over time, then the last ones.
func writeText(out io.Writer, r report) error {
	w := newPrinter(out)
	for _, rec := range r.recordings {
		w.printf("%s: %d rows, %d columns, lives: %d\n", rec.name, len(rec.table.Rows), len(rec.table.Columns), rec.result.Lives)
		for _, e := range rec.result.Events {
			w.printf("  %-12s %-28s %-10s %-8s %s\n", clock(rec.table, e.Time), e.Name, e.Verdict.Shape, e.Verdict.Outcome, e.Verdict.Reason)
		}
		w.printf("  at the end:\n")
		for _, s := range rec.result.Series {
			since := ""
			if s.Since != nil {
				since = ", since " + clock(rec.table, *s.Since)
			}
			w.printf("    %-28s %-10s %-8s %s%s\n", s.Name, s.Shape, s.Outcome, s.Reason, since)
		}
	}
	for _, h := range r.heaps {
		w.printf("%s: heap profile, %d sites, rate %d, %.1f MiB in use by its sites\n", h.name, len(h.heap.Sites), h.heap.Rate, h.heap.InuseBytes()/(1<<20))
	}
	for _, f := range r.Findings {
		w.printf("%s %s (%s): %s\n", f.Verdict, f.Category, f.Rule, f.Reason)
		if f.Culprit.Function != "" {
			w.printf("    look at  %s\n", f.Culprit)
		}
		if f.Advice != "" {
			w.printf("    advice   %s\n", f.Advice)
		}
		for _, stack := range f.Stacks {
			for _, frame := range stack {
				w.printf("      %s\n", frame)
			}
		}
	}
	if l := r.TimeToLimit; l != nil {
		w.printf("limit reached in about %v (%s)\n", l.Likely.Round(time.Minute), limitRange(l))
	}
	w.printf("verdict: %s\n", strings.ToLower(r.Verdict.String()))
	return w.flush()
}

func limitRange(l *memstats.TimeToLimit) string {
	if l.Latest == 0 {
		return fmt.Sprintf("%v or more", l.Earliest.Round(time.Minute))
	}
	return fmt.Sprintf("%v to %v", l.Earliest.Round(time.Minute), l.Latest.Round(time.Minute))
}

// clock prints a time as the recording counts it: since its first row when it counts seconds from zero or so, else as
// a date.
func clock(t *memstats.Table, at time.Time) string {
	const year = 365 * 24 * time.Hour
	if len(t.Times) > 0 && t.Times[0].After(time.Unix(0, 0).Add(10*year)) {
		return at.UTC().Format(time.RFC3339)
	}
	return time.Duration(at.UnixNano()).Round(time.Second).String()
}
