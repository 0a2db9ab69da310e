package leakguard

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// FindingSchema is the version of Finding's JSON form. It changes when a field changes its meaning or goes.
const FindingSchema = 1

// Tier says how certain a finding is, which decides what it may do.
type Tier string

// The tiers, from the most to the least certain.
const (
	// TierProven alarms at once: exact accounts or a proof by the runtime.
	TierProven Tier = "proven"
	// TierLikely alarms when it persists.
	TierLikely Tier = "likely"
	// TierListed is on the page and in the report, and never alarms.
	TierListed Tier = "listed"
	// TierNotice is said once and never alarms.
	TierNotice Tier = "notice"
)

// rank orders the tiers, the most certain first.
func (t Tier) rank() int {
	return slices.Index([]Tier{TierProven, TierLikely, TierListed, TierNotice}, t)
}

// alarms reports whether findings of this tier fire.
func (t Tier) alarms() bool { return t == TierProven || t == TierLikely }

// atLeast reports whether t is as certain as other, for the tiers that alarm.
func (t Tier) atLeast(other Tier) bool { return t == TierProven || t == other }

// State is where a finding is in its life.
type State string

// The states of a finding.
const (
	// StateListed is a finding that does not alarm.
	StateListed State = "listed"
	// StatePending is a finding that will fire when it persists.
	StatePending State = "pending"
	// StateFiring is an alarm.
	StateFiring State = "firing"
	// StateResolved is a finding that fired and of which nothing has been seen for a while; it stays in the report for an hour.
	StateResolved State = "resolved"
)

// Finding is one leak, or what may be one: everything that is known of one culprit. It is an immutable value; its JSON
// form is the same in the report, on the page, in the logs and in the commands.
type Finding struct {
	// Schema is FindingSchema.
	Schema int `json:"schema"`
	// Fingerprint is stable over the life of a leak, over restarts of the process and over releases that do not rename
	// the culprit: a hash of category, culprit function and controller, 16 hexadecimal digits.
	Fingerprint string `json:"fingerprint"`
	// Rule is the evidence that carries the finding, see Rules.
	Rule string `json:"rule"`
	// Category is the kind of leak: "goroutine-orphaned", "goroutine-growth".
	Category string `json:"category"`
	// Tier is how certain it is; offline findings have none.
	Tier Tier `json:"tier,omitempty"`
	// State is where it is in its life; offline findings have none.
	State State `json:"state,omitempty"`
	// Verdict is leak or suspect.
	Verdict stackmatch.Verdict `json:"verdict"`
	// Severity says how soon a person should look.
	Severity stackmatch.Severity `json:"severity"`
	// Controller is the controller whose reconciles leak; empty when the leak has no scope.
	Controller string `json:"controller,omitempty"`
	// Count is how many goroutines, bytes or other units are leaked now.
	Count int64 `json:"count"`
	// PerHour is how fast Count grows; 0 when unknown.
	PerHour float64 `json:"per_hour"`
	// WaitReason is what the goroutines wait for, in the runtime's words.
	WaitReason string `json:"wait_reason,omitempty"`
	// Culprit is the frame to blame; its Function is the pattern's name when the code to fix is in no frame.
	Culprit frame.Frame `json:"culprit"`
	// FirstSeen and LastSeen are when the leak was first and last measured.
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	// Reason is the evidence in a sentence, with its numbers.
	Reason string `json:"reason"`
	// Advice is what to do about it; may be empty.
	Advice string `json:"advice,omitempty"`
	// Trap is the row of the table of traps it belongs to; may be empty.
	Trap string `json:"trap,omitempty"`
	// Stacks are up to three sample stacks, each of frames leaf first.
	Stacks [][]frame.Frame `json:"stacks,omitempty"`
}

// maxStacks bounds the sample stacks of a finding.
const maxStacks = 3

// String gives the finding on one line: "controller=app count=40 at app/reconciler.go:88 in (*R).Reconcile.func1 …".
func (f *Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "controller=%s count=%d", orDash(f.Controller), f.Count)
	if f.Culprit.File != "" {
		fmt.Fprintf(&b, " at %s", f.Culprit.Position())
	}
	fmt.Fprintf(&b, " in %s", orDash(f.Culprit.Function))
	if f.WaitReason != "" {
		fmt.Fprintf(&b, " wait=%q", f.WaitReason)
	}
	fmt.Fprintf(&b, " rule=%s tier=%s state=%s", f.Rule, orDash(string(f.Tier)), orDash(string(f.State)))
	if f.PerHour > 0 {
		b.WriteString(" per_hour=" + strconv.FormatFloat(f.PerHour, 'f', 0, 64))
	}
	return b.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// fingerprint makes the stable name of a finding.
func fingerprint(category, function, controller string) string {
	h := fnv.New64a()
	for _, part := range []string{category, function, controller} {
		_, _ = h.Write([]byte(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
