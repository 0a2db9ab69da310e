package stackmatch

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// FindingSchema is the version of the JSON form of [Finding]. It changes when a field changes its meaning or goes.
const FindingSchema = 1

// maxStacks bounds the sample stacks of a finding.
const maxStacks = 3

// Finding is one thing that the analysis has to say. Several groups of goroutines that belong to one cause are one
// finding. Its JSON form is that of the findings of package leakguard, without the tier and the state, which only a
// process that is watched over time has.
type Finding struct {
	// Schema is FindingSchema.
	Schema int `json:"schema"`
	// Fingerprint is equal for equal category, culprit and controller, whatever the counts: 16 hexadecimal digits.
	Fingerprint string `json:"fingerprint"`
	// Rule is the id of the rule that matched.
	Rule string `json:"rule"`
	// Category is the kind of trouble.
	Category string `json:"category"`
	// Verdict says how sure it is.
	Verdict Verdict `json:"verdict"`
	// Severity says how soon a person should look.
	Severity Severity `json:"severity"`
	// Controller is the controller whose goroutines carry leakguard's label; empty when none does.
	Controller string `json:"controller,omitempty"`
	// Count is how many goroutines are lost, or in doubt: without those that are there by design, as far as that is known.
	Count int64 `json:"count"`
	// PerHour is the growth per hour between the dumps when their times are known, else estimated from the spread of the
	// waits; 0 when neither tells.
	PerHour float64 `json:"per_hour"`
	// WaitReason is what the leading group waits for; empty when unknown.
	WaitReason string `json:"wait_reason,omitempty"`
	// Culprit is the function to fix, or, as Reason then says, the pattern's own name.
	Culprit frame.Frame `json:"culprit"`
	// FirstSeen and LastSeen are the times of the first and the last dump that have it; zero when unknown.
	FirstSeen time.Time `json:"first_seen,omitzero"`
	LastSeen  time.Time `json:"last_seen,omitzero"`
	// Reason says why, with the numbers.
	Reason string `json:"reason"`
	// Advice says what to do.
	Advice string `json:"advice"`
	// Trap is the row of the catalogue of measured traps; empty when there is none.
	Trap string `json:"trap,omitempty"`
	// Stacks are up to three sample stacks, each of frames leaf first, the leading group's before the others.
	Stacks [][]frame.Frame `json:"stacks,omitempty"`
}

// sortFindings puts the worst first: by verdict, severity, count, and then by name so that the order is stable.
func sortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(b.Verdict.rank(), a.Verdict.rank()),
			cmp.Compare(b.Severity.rank(), a.Severity.rank()),
			cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Culprit.Function, b.Culprit.Function),
		)
	})
}

// fingerprint makes the stable name of a finding, as package leakguard does.
func fingerprint(category, function, controller string) string {
	h := fnv.New64a()
	for _, part := range []string{category, function, controller} {
		_, _ = h.Write([]byte(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
