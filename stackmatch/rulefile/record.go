package rulefile

import (
	"sync/atomic"
	"time"
)

// maxRecords bounds how many records a Reloader keeps; the oldest go first.
const maxRecords = 64

// The outcomes of a [Record].
const (
	// OutcomeAccepted is a file whose rules are in force from then on.
	OutcomeAccepted = "accepted"
	// OutcomeRejected is a file that was wrong or could not be read: what was in force before still is.
	OutcomeRejected = "rejected"
	// OutcomeExpired is a file in force of which a suppression has expired since the last record.
	OutcomeExpired = "expired"
)

// Record is the audit record of one change, or refused change, of the rules in force: who, what and when.
type Record struct {
	// Time is when it happened.
	Time time.Time `json:"time"`
	// Trigger is what made the reloader look: "start", "event" of the file system, "poll" or "call" of Reload.
	Trigger string `json:"trigger"`
	// Outcome is one of the Outcome constants.
	Outcome string `json:"outcome"`
	// File is the path, SHA256 the hash of the content that was looked at; empty when it could not be read.
	File   string `json:"file"`
	SHA256 string `json:"sha256,omitempty"`
	// InForce is the hash of the content whose rules are in force after it; empty for the built-in rules alone.
	InForce string `json:"inForce,omitempty"`
	// Version and Owner are what the accepted file says of itself.
	Version string `json:"version,omitempty"`
	Owner   string `json:"owner,omitempty"`
	// Rules is how many rules are in force, with the built-in ones.
	Rules int `json:"rules"`
	// Overrides and Disabled are how many built-in rules the accepted file changes and how many rules it switches off.
	Overrides int `json:"overrides"`
	Disabled  int `json:"disabled"`
	// Suppressions is how many the file in force has, Expired how many of them no longer hold.
	Suppressions int `json:"suppressions"`
	Expired      int `json:"expired"`
	// Error is why the file was rejected, or which suppressions have expired; empty otherwise. It has a line for each problem.
	Error string `json:"error,omitempty"`
}

// Stats are the counters of a [Reloader]. They never fall.
type Stats struct {
	// Reloads is how many files were accepted, Rejections how many were not: the same content is counted once in a row.
	Reloads, Rejections uint64
	// Checks is how often the file was read, Events how many events of the file system made it so.
	Checks, Events uint64
	// WatchErrors is how often the file system could not be watched; polling goes on then.
	WatchErrors uint64
	// ConditionErrors is how many evaluations of a condition failed, by an error or by the cost limit.
	ConditionErrors uint64
}

// Status is what is in force now.
type Status struct {
	// Stale is set while the file is wrong or missing and older rules are in force.
	Stale bool
	// Problem is the last error of the file, empty unless Stale; ConditionError is the last of a condition, if there was one.
	Problem, ConditionError string
	// SHA256, Version and Owner are those of the file in force; empty for the built-in rules alone.
	SHA256, Version, Owner string
	// Since is when it came into force; zero for the built-in rules alone.
	Since time.Time
	// Rules is how many rules are in force, with the built-in ones.
	Rules int
	// Suppressions is how many the file in force has, Expired how many of them no longer hold.
	Suppressions, Expired int
}

// counters are the live form of Stats.
type counters struct {
	reloads, rejections, checks, events, watchErrors, conditionErrors atomic.Uint64
}

// snapshot reads the counters.
func (c *counters) snapshot() Stats {
	return Stats{
		Reloads: c.reloads.Load(), Rejections: c.rejections.Load(), Checks: c.checks.Load(), Events: c.events.Load(),
		WatchErrors: c.watchErrors.Load(), ConditionErrors: c.conditionErrors.Load(),
	}
}
