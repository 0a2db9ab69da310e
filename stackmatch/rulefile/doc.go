// Package rulefile reads the rules of package stackmatch from YAML, with conditions in CEL, and keeps a mounted file in force.
//
// # Usage
//
// A file has rules of its own, changes to built-in ones, rules that are switched off, and suppressions:
//
//	# yaml-language-server: $schema=schema.json
//	schema: 1
//	version: "2026-11-30.1"      # for the audit record, like owner
//	owner: team-operators
//	disabled: [GOR-506]
//	rules:
//	  - id: APP-001
//	    title: upload workers pile up
//	    severity: warning
//	    categories: [upload]
//	    doc: Workers wait for a reply that nobody sends. A burst ends within minutes.
//	    advice: Give the reply channel room for one.
//	    verdict: suspect
//	    match:                   # the fields of stackmatch.Match; durations are written 10m
//	      frames: [{prefix: example.com/app/upload.}]
//	    when: group.count >= 10 && group.slopePerMinute > 1
//	  - id: GOR-505              # a built-in rule: what is left out stays as it is
//	    severity: critical
//	suppressions:
//	  - rule: GOR-501
//	    culprit: {prefix: example.com/app/legacy.}
//	    owner: team-legacy
//	    reason: parks on purpose, goes with version 2
//	    expires: 2027-06-30
//
// Own rules come before the built-in ones; a changed one keeps its place; the first that matches wins. Lists and patterns
// of a built-in rule are replaced, not added to, and predicate: "" takes its predicate away. builtin: false leaves the
// built-in rules out. [Parse] and [Load] check everything and report all problems with file, line, rule and field
// ([Problems]); unknown fields are problems. The command stackmatch check does the same, and its -schema prints the JSON
// Schema for editors, which is also the file schema.json beside this package's source.
//
// A condition sees the fields of [Group] under the names in their cel tags. The slope is not part of a group: a
// [Reloader] takes it from the counts of the groups that it is asked about. Others can give Options.Slope, for which
// [Slopes] is made; without it the slope is that between the dumps, when the stackmatch.Context knows their times.
// Growth between dumps is group.grown, from the earlier groups of that Context.
//
// In an operator, add a [Reloader] to the manager and hand it to leakguard as its rules:
//
//	rules, err := rulefile.NewReloader(rulefile.ReloaderOptions{Path: "/etc/leakguard/rules.yaml"})
//	...
//	err = mgr.Add(rules)
//	err = mgr.Add(leakguard.New(leakguard.Options{Rules: rules}))
//
// A file that is wrong or gone changes nothing: the last good rules stay, and Stats, Status, Records and the Audit hook
// tell. An expired suppression does not make a file wrong, but it is reported in the same places.
//
// # Cost
//
// On two shared cores a condition on numbers takes some tens of microseconds and 17 allocations, one over the 20 frames
// of a stack about ten times that and 189 allocations, and reading a file with two conditions some milliseconds:
//
//	go test -run '^$' -bench . ./stackmatch/rulefile
//
// A condition is asked only when all of match holds, and only those fields of the group are made that it reads. A file
// is refused when a condition may cost more than [MaxEstimate] units on a large stack; an evaluation ends at [MaxCost]
// units or after [MaxTime]. Linking CEL adds about 6 MB to a program; package leakguard does not link this one.
//
// # Concurrency
//
// A [File] is immutable; [Slopes] and [Reloader] lock for themselves. Matching reads an atomic pointer and never waits
// for a file. Start of a Reloader has one goroutine of fsnotify beside its own, and both have ended when it returns.
//
// # Limits
//
// Files have at most 1 MiB, 1,000 rules and 1,000 suppressions; conditions 4 KiB. A condition that fails (a missing label:
// test with "x" in group.labels first) does not hold, and is counted. CEL's extensions are left out, since some make huge
// values at the cost of one operation. A ConfigMap mounted by subPath is never updated by the kubelet, so there is
// nothing to follow. A suppression does not change what Match gives: whoever shows findings asks for it.
package rulefile
