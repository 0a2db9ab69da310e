package probes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"time"
)

// ErrSet is wrapped by each error of [NewSet]: a set is checked once, when it is built.
var ErrSet = errors.New("probes: bad set")

// DefaultReadTimeout is how long one probe may take in [Set.Read].
const DefaultReadTimeout = time.Second

// maxReason bounds what is kept of a panic, in bytes.
const maxReason = 256

// Set is a fixed list of probes, each guarded: one that panics is switched off, one that takes too long is left out
// until it comes back.
type Set struct {
	slots   []*slot
	timeout time.Duration
}

type slot struct {
	probe  Probe
	name   string
	busy   atomic.Bool
	off    atomic.Bool
	panics atomic.Uint64
	late   atomic.Uint64
	reason atomic.Pointer[string]
}

// SetStats is how one probe has behaved since the set was built.
type SetStats struct {
	// Probe is its name.
	Probe string `json:"probe"`
	// Panics counts its panics; the first one switches it off.
	Panics uint64 `json:"panics,omitempty"`
	// Late counts the reads that it was left out of for taking too long.
	Late uint64 `json:"late,omitempty"`
	// Off is set when it is no longer asked.
	Off bool `json:"off,omitempty"`
	// Reason is what it panicked with, cut at 256 bytes.
	Reason string `json:"reason,omitempty"`
}

// NewSet checks the names of the probes and builds a set. timeout bounds each probe's time in one Read; 0 is [DefaultReadTimeout].
func NewSet(timeout time.Duration, list ...Probe) (*Set, error) {
	if timeout == 0 {
		timeout = DefaultReadTimeout
	}
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	seen := map[string]bool{}
	s := &Set{timeout: timeout}
	for i, p := range list {
		if p == nil {
			return nil, fmt.Errorf("%w: probe %d is nil", ErrSet, i)
		}
		n := p.Name()
		if !name.MatchString(n) {
			return nil, fmt.Errorf("%w: probe %d: name %q is not lower case words joined by underscores", ErrSet, i, n)
		}
		if seen[n] {
			return nil, fmt.Errorf("%w: two probes are named %q", ErrSet, n)
		}
		seen[n] = true
		s.slots = append(s.slots, &slot{probe: p, name: n})
	}
	return s, nil
}

// Read asks every probe that is on and not still busy with an earlier Read, and appends what they count to dst. It
// returns within the set's timeout for each probe, whatever a probe does; a blocked one keeps its goroutine until it
// returns.
func (s *Set) Read(ctx context.Context, dst []Reading) []Reading {
	for _, sl := range s.slots {
		dst = append(dst, sl.read(ctx, s.timeout)...)
	}
	return dst
}

// Stats gives how each probe has behaved, in the order of the set.
func (s *Set) Stats() []SetStats {
	out := make([]SetStats, 0, len(s.slots))
	for _, sl := range s.slots {
		st := SetStats{Probe: sl.name, Panics: sl.panics.Load(), Late: sl.late.Load(), Off: sl.off.Load()}
		if reason := sl.reason.Load(); reason != nil {
			st.Reason = *reason
		}
		out = append(out, st)
	}
	return out
}

func (sl *slot) read(ctx context.Context, timeout time.Duration) []Reading {
	if sl.off.Load() {
		return nil
	}
	if !sl.busy.CompareAndSwap(false, true) {
		sl.late.Add(1)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan []Reading, 1) // buffered: a late answer has no reader
	go sl.ask(ctx, done)
	select {
	case readings := <-done:
		return readings
	case <-ctx.Done():
		sl.late.Add(1)
		return nil
	}
}

func (sl *slot) ask(ctx context.Context, done chan<- []Reading) {
	var readings []Reading
	defer func() {
		if r := recover(); r != nil {
			readings = nil
			reason := fmt.Sprint(r)
			reason = reason[:min(len(reason), maxReason)]
			sl.reason.Store(&reason)
			sl.panics.Add(1)
			sl.off.Store(true)
		}
		sl.busy.Store(false)
		done <- readings
	}()
	readings = sl.probe.Read(ctx, nil)
	for i := range readings {
		readings[i].Probe = sl.name
	}
}
