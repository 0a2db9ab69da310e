package probes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrSet is wrapped by each error of [NewSet] and [Set.Add].
var ErrSet = errors.New("probes: bad set")

// DefaultReadTimeout is how long one probe may take in [Set.Read].
const DefaultReadTimeout = time.Second

// maxReason bounds what is kept of a panic, in bytes.
const maxReason = 256

// Set is a list of probes, each guarded: one that panics is switched off, one that takes too long is left out until it
// comes back.
type Set struct {
	timeout time.Duration

	mu      sync.Mutex
	slots   []*slot // replaced, not changed
	objects *ObjectIndex
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

// SetStats is how one probe has behaved since it was added.
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
	s := &Set{timeout: timeout}
	for i, p := range list {
		if _, err := s.Add(p); err != nil {
			return nil, fmt.Errorf("probe %d: %w", i, err)
		}
	}
	return s, nil
}

// probeName is what a probe may be called.
var probeName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Add puts a probe into the set, to be asked from the next Read on, until remove takes it out again; a Read that goes on may
// still ask it. Its error wraps [ErrSet]: the probe is nil, or its name is bad or in use.
func (s *Set) Add(p Probe) (remove func(), err error) {
	if p == nil {
		return nil, fmt.Errorf("%w: the probe is nil", ErrSet)
	}
	name := p.Name()
	if !probeName.MatchString(name) {
		return nil, fmt.Errorf("%w: name %q is not lower case words joined by underscores", ErrSet, name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.slots, func(sl *slot) bool { return sl.name == name }) {
		return nil, fmt.Errorf("%w: two probes are named %q", ErrSet, name)
	}
	s.compareLocked(p)
	added := &slot{probe: p, name: name}
	s.slots = append(slices.Clip(s.slots), added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.slots = slices.DeleteFunc(slices.Clone(s.slots), func(sl *slot) bool { return sl == added })
	}, nil
}

// Against gives the objects that the containers of the set, also those of a later Add, are compared with unless
// [Container.Against] said so; nil for none.
func (s *Set) Against(objects *ObjectIndex) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = objects
	for _, sl := range s.slots {
		s.compareLocked(sl.probe)
	}
}

func (s *Set) compareLocked(p Probe) {
	if c, ok := p.(*Container); ok {
		c.compare(s.objects, false)
	}
}

// list gives the probes as they are now.
func (s *Set) list() []*slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots
}

// Read asks every probe that is on and not still busy with an earlier Read, and appends what they count to dst. It
// returns within the set's timeout for each probe, whatever a probe does; a blocked one keeps its goroutine until it
// returns.
func (s *Set) Read(ctx context.Context, dst []Reading) []Reading {
	for _, sl := range s.list() {
		dst = append(dst, sl.read(ctx, s.timeout)...)
	}
	return dst
}

// Stats gives how each probe has behaved, in the order in which they were added.
func (s *Set) Stats() []SetStats {
	list := s.list()
	out := make([]SetStats, 0, len(list))
	for _, sl := range list {
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
