package leakguard

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// Why Check fails.
var (
	// ErrStalled occurs when no sample has completed for five intervals or a minute, whichever is longer.
	ErrStalled = errors.New("leakguard: no sample has completed lately")
	// ErrLeaking occurs when a finding is firing and Options.UnreadyOn asks for it.
	ErrLeaking = errors.New("leakguard: a leak is firing")
)

var _ healthz.Checker = (*Guard)(nil).Check

// stalledAfter is the shortest silence that counts as a stall.
const stalledAfter = time.Minute

// Check is a healthz.Checker. It fails when the guard has started and no sample has completed for five intervals, at
// least a minute, and for findings only as far as Options.UnreadyOn asks for it. It never blocks.
func (g *Guard) Check(*http.Request) error {
	last := max(g.sampled.Load(), g.started.Load())
	if last == 0 {
		return nil // not started
	}
	r := g.Report()
	interval := time.Duration(r.Sampling.IntervalSeconds * float64(time.Second))
	if silent := time.Since(time.Unix(0, last)); silent > max(5*interval, stalledAfter) {
		return fmt.Errorf("%w: the last one %s ago", ErrStalled, silent.Round(time.Second))
	}
	if g.options.UnreadyOn == "" {
		return nil
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.State == StateFiring && f.Tier.atLeast(g.options.UnreadyOn) {
			return fmt.Errorf("%w: %s", ErrLeaking, f.Fingerprint)
		}
	}
	return nil
}
