package memstats

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// FindingSchema is the version of the JSON form of findings.
const FindingSchema = 1

// Finding is one leak, or suspicion, in the form that all of leakguard's output shares. Offline output has no tier
// and no state.
type Finding struct {
	Schema int `json:"schema"`
	// Fingerprint is the same for the same leak in another run.
	Fingerprint string `json:"fingerprint"`
	// Rule is what found it: growth, retention, backlog, heap-site, too-early.
	Rule     string  `json:"rule"`
	Category string  `json:"category"`
	Verdict  Outcome `json:"verdict"`
	// Severity is "warning" for leaks and "info" for suspicions.
	Severity   string  `json:"severity"`
	Controller string  `json:"controller,omitempty"`
	Count      int64   `json:"count"`
	PerHour    float64 `json:"per_hour"`
	WaitReason string  `json:"wait_reason,omitempty"`
	// Culprit is the frame to look at; zero when no frame is known.
	Culprit   frame.Frame `json:"culprit"`
	FirstSeen time.Time   `json:"first_seen,omitzero"`
	LastSeen  time.Time   `json:"last_seen,omitzero"`
	Reason    string      `json:"reason"`
	Advice    string      `json:"advice,omitempty"`
	Trap      string      `json:"trap,omitempty"`
	// Stacks are at most three, leaf first.
	Stacks [][]frame.Frame `json:"stacks,omitempty"`
}

// finish fills what follows from the rest.
func (f *Finding) finish(what string) {
	f.Schema = FindingSchema
	f.Severity = "info"
	if f.Verdict == Leak {
		f.Severity = "warning"
	}
	h := fnv.New64a()
	h.Write([]byte(f.Rule + "\x00" + f.Culprit.Function + "\x00" + what))
	f.Fingerprint = fmt.Sprintf("%016x", h.Sum64())
}
