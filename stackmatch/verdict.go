package stackmatch

// Verdict is what a rule or an analysis says of what it looked at.
type Verdict string

// The verdicts, from the least to the most serious. The empty Verdict means "no opinion".
const (
	// VerdictBenign is something that looks like a leak and is none.
	VerdictBenign Verdict = "benign"
	// VerdictSuspect is something that the input cannot decide: another dump, a gauge of live objects or an owner can.
	VerdictSuspect Verdict = "suspect"
	// VerdictLeak is something that never goes away by itself, or grows without a bound.
	VerdictLeak Verdict = "leak"
)

// rank orders verdicts; an unknown one ranks lowest.
func (v Verdict) rank() int {
	switch v {
	case VerdictLeak:
		return 3
	case VerdictSuspect:
		return 2
	case VerdictBenign:
		return 1
	}
	return 0
}

// Valid reports whether v is one of the three verdicts.
func (v Verdict) Valid() bool { return v.rank() > 0 }

// Worse reports whether v is more serious than w.
func (v Verdict) Worse(w Verdict) bool { return v.rank() > w.rank() }

// Severity says how soon somebody must act on a finding.
type Severity string

// The severities, from the least to the most pressing.
const (
	// SeverityInfo needs no action.
	SeverityInfo Severity = "info"
	// SeverityWarning needs a fix in the next release.
	SeverityWarning Severity = "warning"
	// SeverityCritical stops the operator's work, or will within hours.
	SeverityCritical Severity = "critical"
)

// rank orders severities; an unknown one ranks lowest.
func (s Severity) rank() int {
	switch s {
	case SeverityCritical:
		return 3
	case SeverityWarning:
		return 2
	case SeverityInfo:
		return 1
	}
	return 0
}

// Valid reports whether s is one of the three severities.
func (s Severity) Valid() bool { return s.rank() > 0 }
