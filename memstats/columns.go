package memstats

import (
	"slices"
	"strings"
)

// Role is what a column of a recording is for.
type Role uint8

// The roles.
const (
	// RoleCount is a number that must not grow for ever: goroutines, descriptors, threads, series in a registry.
	RoleCount Role = iota
	// RoleBytes is memory that must not grow for ever.
	RoleBytes
	// RoleResident is memory as the kernel sees it: it may grow beside the Go heap, and it keeps what was freed.
	RoleResident
	// RoleBacklog is a queue: it may drive others, and when it grows itself something is too slow.
	RoleBacklog
	// RoleLoad is a gauge that may drive others: live objects, clients, requests a second.
	RoleLoad
	// RoleWork is a counter of work done, such as reconciles.
	RoleWork
	// RoleDerived follows from others (the GC's goal, idle spans) and is shown, not judged.
	RoleDerived
	// RoleRestart changes when the process starts anew.
	RoleRestart
)

// String gives "count", "bytes", "resident", "backlog", "load", "work", "derived" or "restart".
func (r Role) String() string {
	return [...]string{"count", "bytes", "resident", "backlog", "load", "work", "derived", "restart"}[min(r, RoleRestart)]
}

// RoleOf guesses from a column's name what it is for. What no rule knows is a count to be judged.
func RoleOf(name string) Role {
	name = normalName(name)
	for _, rule := range roleRules() {
		if rule.matches(name) {
			return rule.role
		}
	}
	return RoleCount
}

// normalName writes the words of a column's name in small letters with underscores between: "HeapAlloc", "heap-alloc"
// and "HEAP ALLOC" are "heap_alloc", "OpenFDs" is "open_fds".
func normalName(name string) string {
	name = strings.NewReplacer("-", "_", ".", "_", " ", "_").Replace(name)
	b := make([]byte, 0, len(name)+8)
	for i := range len(name) {
		if i > 0 && wordBegins(name, i) {
			b = append(b, '_')
		}
		b = append(b, name[i])
	}
	return strings.ToLower(string(b))
}

// wordBegins says whether a capital letter at i > 0 begins a word: behind a small letter or digit, or as the last of
// several capitals when small ones follow that are more than the s of a plural.
func wordBegins(name string, i int) bool {
	small := func(k int) bool { return k < len(name) && name[k] >= 'a' && name[k] <= 'z' }
	capital := func(k int) bool { return name[k] >= 'A' && name[k] <= 'Z' }
	switch {
	case !capital(i):
		return false
	case !capital(i - 1):
		return name[i-1] != '_'
	default:
		return small(i+1) && (name[i+1] != 's' || small(i+2))
	}
}

// roleRule matches a name by any of its lists. The first rule that matches holds.
type roleRule struct {
	role                       Role
	exact, parts, starts, ends []string
}

func (r roleRule) matches(name string) bool {
	return slices.Contains(r.exact, name) ||
		slices.ContainsFunc(r.parts, func(p string) bool { return strings.Contains(name, p) }) ||
		slices.ContainsFunc(r.starts, func(p string) bool { return strings.HasPrefix(name, p) }) ||
		slices.ContainsFunc(r.ends, func(p string) bool { return strings.HasSuffix(name, p) })
}

func roleRules() []roleRule {
	return []roleRule{
		{role: RoleRestart, parts: []string{"start_time", "starttime", "uptime_start"}, exact: []string{"pid", "restarts", "version"}},
		{role: RoleDerived, exact: []string{
			"sys", "heap_sys", "heap_idle", "heap_inuse", "heap_released", "next_gc", "gc_goal", "heap_goal", "gomemlimit", "gogc", "uptime",
			"", "index", "row", "unnamed:_0", // a row number
		}, ends: []string{"_limit", "_limit_bytes", "_inuse_bytes", "_idle_bytes", "_released_bytes", "_sys_bytes", "next_gc_bytes"}, parts: []string{"gc_pause", "gc_cpu"}},
		{role: RoleWork, exact: []string{"num_gc", "numgc", "mallocs", "frees", "total_alloc", "num_forced_gc", "goroutines_created", "lookups", "reconciles", "reconcile_count", "request_count", "event_count", "gc_count", "gc_cycles"}, ends: []string{"_total", "_total_bytes", "_seconds_count", "_seconds_sum"}},
		{role: RoleLoad, parts: []string{"per_s", "per_min", "per_hour", "per_sec", "qps", "rps"}, ends: []string{"_rate", "_ms", "_latency_seconds", "_duration_seconds"}},
		{role: RoleResident, parts: []string{"rss", "resident", "working_set"}},
		{role: RoleCount, exact: []string{"heap_objects"}, parts: []string{"unfinished_work", "longest_running", "goroutine", "threads", "fds", "registry_series"}},
		{role: RoleBytes, parts: []string{"heap", "stack_inuse"}, ends: []string{"_bytes", "_mem", "_memory", "alloc"}, exact: []string{"memory", "alloc", "mem"}},
		{role: RoleBacklog, parts: []string{"depth", "backlog", "queue_len", "pending", "in_flight", "inflight", "lag"}, exact: []string{"queue", "queued"}},
		{
			role: RoleLoad, starts: []string{"live_", "cached_", "watched_", "connected_", "active_", "desired_", "cluster_", "managed_", "store_"},
			ends: []string{"pods", "nodes", "namespaces", "tenants", "clients", "sessions", "objects", "crs", "resources", "customresources", "users", "clusters", "keys_live", "load", "instances", "workloads", "deployments", "services", "secrets", "configmaps", "replicas"},
		},
	}
}

func isTimeColumn(name string) bool {
	switch strings.ToLower(name) {
	case "t", "time", "timestamp", "ts":
		return true
	}
	return false
}

// pairing says which two counters make a gauge together.
type pairing struct {
	plus, minus, name string
	role              Role
}

func pairings() []pairing {
	return []pairing{
		{"_in_total", "_handled_total", "_pending", RoleBacklog},
		{"_in_total", "_out_total", "_pending", RoleBacklog},
		{"_received_total", "_handled_total", "_pending", RoleBacklog},
		{"_received_total", "_processed_total", "_pending", RoleBacklog},
		{"_enqueued_total", "_dequeued_total", "_pending", RoleBacklog},
		{"_queued_total", "_executed_total", "_pending", RoleCount},
		{"_queued", "_executed", "_pending", RoleCount},
		{"_added_total", "_removed_total", "_registered", RoleCount},
		{"_opened_total", "_closed_total", "_open", RoleCount},
		{"_started_total", "_stopped_total", "_running", RoleCount},
		{"_started_total", "_finished_total", "_running", RoleCount},
		{"_created_total", "_deleted_total", "_live", RoleLoad},
	}
}

// isCycles knows the counter of GC cycles.
func isCycles(name string) bool {
	switch normalName(name) {
	case "num_gc", "numgc", "gc_count", "gc_cycles", "gc_cycles_total", "go_gc_duration_seconds_count", "go_gc_cycles_total_gc_cycles_total":
		return true
	}
	return false
}
