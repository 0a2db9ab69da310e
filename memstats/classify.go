package memstats

import "strings"

// classify gives the rule, the category, the advice and the trap for a column that is not benign.
func classify(s SeriesVerdict) (rule, category, advice, trap string) {
	switch {
	case s.Verdict.NeedSamples > 0:
		return "too-early", "insufficient-evidence", "Record for longer: start-up looks like this too.", ""
	case s.Role == RoleBacklog:
		return "backlog", "handler-backpressure", "Find out why the consumer is slow; bound the queue or drop duplicates.", "S2-07c"
	case s.Verdict.Shape == Stepped:
		return "retention", "heap-retention", "Look for pools, slices cut to a shorter length and maps that grew in the burst: clear what is beyond the length, or make them anew.", "S2-01d"
	}
	category, advice, trap = byName(normalName(s.Name))
	if s.Role == RoleResident {
		category, advice = "memory-outside-heap", "Compare with the Go heap: what grows beside it is C memory, mapped files or memory that the kernel has not taken back."
	}
	return "growth", category, advice, trap
}

// byName knows what the usual columns mean.
func byName(name string) (category, advice, trap string) {
	for _, known := range []struct{ part, category, advice, trap string }{
		{"goroutine", "goroutine-growth", "Compare two goroutine dumps: the group that grows names the place.", ""},
		{"fd", "fd-growth", "Close bodies, files, watchers and clients; look for a client or transport made per reconcile.", "S1-05b"},
		{"thread", "thread-growth", "Threads grow with blocking system calls and C calls; the threadcreate profile and gdb show them.", ""},
		{"registry_series", "heap-metric-cardinality", "Delete the label sets of objects that are gone (DeleteLabelValues, DeletePartialMatch).", ""},
		{"unfinished_work", "heap-workqueue-not-done", "Every Get of a workqueue needs a Done, also on the error path.", ""},
		{"longest_running", "heap-workqueue-not-done", "One item has been in process all the time: a hung handler, or a Get without Done.", ""},
		{"finalizer", "finalizer-blocked", "One finalizer that blocks stops all others: it must not wait for anything.", "S1-17c"},
		{"heap", "heap-growth", "Compare two heap profiles with the replay command: the site that grows names the place.", ""},
	} {
		if strings.Contains(name, known.part) {
			return known.category, known.advice, known.trap
		}
	}
	return "growth", "Find what adds to it and never takes away.", ""
}
