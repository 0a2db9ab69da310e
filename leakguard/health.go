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

var (
	_ healthz.Checker = (*Guard)(nil).Check
	_ healthz.Checker = (*Guard)(nil).CheckSampling
)

// stalledAfter is the shortest silence that counts as a stall.
const stalledAfter = time.Minute

// CheckSampling is a healthz.Checker for liveness. It fails when the guard has started and no sample has completed for five
// intervals, at least a minute, and never for findings. It never blocks.
func (g *Guard) CheckSampling(*http.Request) error {
	last := max(g.sampled.Load(), g.started.Load())
	if last == 0 {
		return nil // not started
	}
	interval := time.Duration(g.Report().Sampling.IntervalSeconds * float64(time.Second))
	if silent := time.Since(time.Unix(0, last)); silent > max(5*interval, stalledAfter) {
		return fmt.Errorf("%w: the last one %s ago", ErrStalled, silent.Round(time.Second))
	}
	return nil
}

// Check is a healthz.Checker for readiness. It fails when [Guard.CheckSampling] does, and for findings only as far as
// Options.UnreadyOn asks for it: do not use it for liveness then, for the kubelet would restart the container. It never blocks.
func (g *Guard) Check(r *http.Request) error {
	if err := g.CheckSampling(r); err != nil || g.options.UnreadyOn == "" {
		return err
	}
	findings := g.Report().Findings
	for i := range findings {
		if f := &findings[i]; f.State == StateFiring && f.Tier.atLeast(g.options.UnreadyOn) {
			return fmt.Errorf("%w: %s", ErrLeaking, f.Fingerprint)
		}
	}
	return nil
}
