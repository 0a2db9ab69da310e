package gomegaleak

import (
	"fmt"

	"github.com/onsi/gomega/types"

	"github.com/leakguard/leakguard/leakguard/leaktest"
)

// Goroutines gives the goroutines of the process that belong to nobody known: neither the runtime, package testing, Ginkgo
// nor the entries of leaktest.Pack. It is nil when the dump cannot be read, which does not happen for one of this process.
func Goroutines() []leaktest.Leak {
	leaks, err := leaktest.Leaks(leaktest.Settle(0), leaktest.WithoutProof())
	if err != nil {
		return nil
	}
	return leaks
}

// HaveLeaked succeeds when there are goroutines left that the arguments do not excuse: a snapshot that [Goroutines] gave
// before, or options of leaktest that ignore. Its actual value is what Goroutines gives; hand Eventually the function, not its
// result, so that it looks again.
func HaveLeaked(excuses ...any) types.GomegaMatcher {
	m := &leaked{}
	for i, e := range excuses {
		switch e := e.(type) {
		case []leaktest.Leak:
			m.before = append(m.before, e...)
		case leaktest.Option:
			m.options = append(m.options, e)
		default:
			m.err = fmt.Errorf("gomegaleak: HaveLeaked: argument %d is a %T, neither a snapshot nor an option of leaktest", i+1, e)
		}
	}
	return m
}

// leaked is the matcher.
type leaked struct {
	before  []leaktest.Leak
	options []leaktest.Option
	err     error
	left    []leaktest.Leak
}

// Match implements types.GomegaMatcher.
func (m *leaked) Match(actual any) (bool, error) {
	if m.err != nil {
		return false, m.err
	}
	all, ok := actual.([]leaktest.Leak)
	if !ok {
		return false, fmt.Errorf("gomegaleak: HaveLeaked looks at what Goroutines gives, not at a %T", actual)
	}
	left, err := leaktest.Filter(all, m.before, m.options...)
	m.left = left
	return len(left) > 0, err
}

// FailureMessage implements types.GomegaMatcher.
func (*leaked) FailureMessage(any) string { return "Expected goroutines to have leaked, but none has" }

// NegatedFailureMessage implements types.GomegaMatcher.
func (m *leaked) NegatedFailureMessage(any) string {
	return fmt.Sprintf("Expected no goroutines to have leaked, but %d have:\n%s", len(m.left), leaktest.Describe(m.left))
}
