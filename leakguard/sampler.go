package leakguard

import (
	"bytes"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch"
)

// sampler takes the samples of one run of a guard. All its state belongs to the goroutine that runs Start.
type sampler struct {
	guard    *Guard
	probes   *probes.Set
	detector *Detector
	governor governor
	memory   *memstats.Reader
	profile  stackmatch.ProfileReader
	heaps    heapKeeper
	load     loadReader
	captures memstats.Captures
	proofAt  time.Time
	begun    time.Time

	sample   memstats.Sample
	buffer   bytes.Buffer
	groups   []stackmatch.Group
	inFlight []probes.Open
	readings []probes.Reading
	states   map[string]State // the last state of each finding, for the log
	taken    uint64
	errors   uint64
	panics   uint64
	off      bool // the detector panicked and is switched off
}

func newSampler(g *Guard, set *probes.Set) *sampler {
	return &sampler{
		guard: g, probes: set, detector: newDetector(&g.options), governor: newGovernor(g.options.Budget, g.timing),
		memory: memstats.NewReader(memstats.Options{Limit: memoryLimit}), states: map[string]State{},
		load:  loadReader{gatherer: gathererOf(g.options.Registerer), every: 3 * g.timing.interval},
		heaps: heapKeeper{timing: g.timing}, captures: memstats.Captures{Dir: g.options.CaptureDir},
	}
}

// run samples until ctx ends.
func (s *sampler) run(ctx context.Context) {
	defer func() {
		if err := s.memory.Close(); err != nil {
			s.guard.log.Error(err, "closing the memory reader")
		}
	}()
	s.begun = time.Now()
	timer := time.NewTimer(0) // the first sample is the baseline
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		s.tick(ctx)
		timer.Reset(max(s.governor.interval-time.Since(began), s.governor.interval/2))
	}
}

// tick takes one sample and publishes a report. A panic is counted and switches the detector off, for the guard must not
// end its host.
func (s *sampler) tick(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			s.panics++
			s.off = true // before anything else: the report must not ask it
			s.guard.log.Info("leakguard has switched its detector off after a panic of its own", "panic", p)
			if s.guard.breakers.release() {
				s.guard.setCondition(time.Now())
			}
			s.publish(time.Now(), s.guard.Report().Findings)
		}
	}()
	s.governor.measure(levelMetrics, func() int {
		s.memory.Read(&s.sample)
		s.memory.ReadProcess(&s.sample)
		return 0
	})
	if s.off {
		return
	}
	ev, ok := s.evidence(ctx)
	if !ok {
		return
	}
	findings := s.detector.Step(ev)
	s.taken++
	s.logChanges(findings)
	s.breakers(ev.At, findings)
	s.governor.adapt(findings, int(s.sample.Goroutines))
	s.publish(ev.At, findings)
}

// evidence takes the samples of one tick; ok is false when the goroutine profile cannot be read.
func (s *sampler) evidence(ctx context.Context) (ev Evidence, ok bool) {
	s.governor.measure(levelProfile, func() int {
		s.buffer.Reset()
		ev.At = time.Now()
		err := stackmatch.CaptureProfile(&s.buffer)
		if err == nil {
			s.groups, err = s.profile.Read(s.groups[:0], s.buffer.Bytes())
		}
		if err != nil {
			s.errors++
			s.guard.log.V(1).Info("the goroutine profile cannot be read", "error", err.Error())
		}
		ok = err == nil
		return s.buffer.Len()
	})
	s.inFlight = process.scopes.InFlight(s.inFlight[:0])
	s.guard.objects.Refresh(ev.At)
	s.readings = s.probes.Read(ctx, s.readings[:0])
	ev.Groups, ev.InFlight, ev.Objects, ev.Readings, ev.Memory = s.groups, s.inFlight, s.guard.objects, s.readings, s.sample
	if !ok {
		return ev, false
	}
	if s.detector.NeedsDump() {
		ev.Dump = s.dump()
		ev.DumpRefused = ev.Dump == nil
	}
	s.governor.measure(levelMetrics, func() int { ev.Load = s.load.read(ev.At); return 0 })
	for _, st := range process.scopes.Stats(nil) {
		ev.Load.Reconciles += st.Begun
	}
	s.heapProfiles(&ev)
	s.proof(&ev)
	return ev, true
}

// maxDumpBytes bounds a full dump: about 160,000 goroutines of 400 bytes.
const maxDumpBytes = 64 << 20

// dump takes a full dump when the pause budget allows it; nil otherwise.
func (s *sampler) dump() *stackmatch.Dump {
	goroutines := int(s.sample.Goroutines)
	if !s.governor.allowDump(goroutines) {
		return nil
	}
	var text []byte
	s.governor.measureDump(goroutines, func() int {
		text, _ = stackmatch.CaptureText(maxDumpBytes)
		return len(text)
	})
	d, err := stackmatch.Read(bytes.NewReader(text), stackmatch.ReadOptions{})
	if err != nil {
		s.errors++
		return nil
	}
	s.capture("goroutines.txt", text)
	return d
}

// heapProfiles takes a heap profile when one is due, and hands in all that are kept when the detector wants them.
func (s *sampler) heapProfiles(ev *Evidence) {
	wanted := s.detector.NeedsHeaps()
	if s.heaps.due(ev.At, s.governor.every(levelHeap, s.guard.timing.heapEvery), wanted) {
		s.governor.measure(levelHeap, func() int {
			n, err := s.heaps.take(ev.At)
			if err != nil {
				s.errors++
			}
			return n
		})
		if wanted {
			s.capture("heap.pb.gz", s.heaps.newest())
		}
	}
	if wanted {
		ev.Heaps = s.heaps.heaps()
	}
}

// proof asks the runtime's leak profile when Options.Proof allows it and it is due.
func (s *sampler) proof(ev *Evidence) {
	if !s.guard.options.Proof || ev.At.Sub(s.proofAt) < s.governor.every(levelProof, s.guard.timing.proofEvery) {
		return
	}
	s.proofAt = ev.At
	s.governor.measure(levelProof, func() int {
		var b bytes.Buffer
		if _, err := stackmatch.CaptureLeaked(&b); err != nil {
			s.guard.addNotice("Options.Proof has no effect: %v", err)
			return 0
		}
		reader := stackmatch.ProfileReader{Main: s.guard.options.MainModule}
		groups, err := reader.Read([]stackmatch.Group{}, b.Bytes())
		if err != nil {
			s.errors++
			return b.Len()
		}
		ev.Proof = groups
		return b.Len()
	})
}

// capture keeps data in Options.CaptureDir; a disk that is full or read-only loses the capture only.
func (s *sampler) capture(name string, data []byte) {
	if len(data) == 0 {
		return
	}
	if _, err := s.captures.Write(time.Now(), name, data); err != nil {
		s.errors++
		s.guard.addNotice("captures cannot be written: %v", err)
	}
}

// memoryLimit is the memory limit of the process's control group, version 1 or 2.
func memoryLimit() (bytes uint64, ok bool) {
	limit, err := memlimit.FromCgroup()
	return limit, err == nil && limit > 0 && limit < math.MaxInt64
}

// publish makes the report of this tick.
func (s *sampler) publish(at time.Time, findings []Finding) {
	g := s.guard
	g.noteWebhooks()
	stats := s.probes.Stats()
	g.noteProbes(stats)
	r := &Report{
		Schema: FindingSchema, At: at, Started: s.begun, Findings: findings,
		Goroutines: int(s.sample.Goroutines), HeapLiveBytes: s.sample.HeapLiveBytes,
		Sampling: Sampling{
			IntervalSeconds: s.governor.interval.Seconds(),
			Due:             1 + uint64(at.Sub(s.begun)/g.timing.interval), Taken: s.taken, //nolint:gosec // at is not before begun
			Levels: s.governor.report(), Errors: s.errors, Panics: s.panics + s.detector.naming.panics,
		},
		Controllers: s.controllers(), Probes: stats,
	}
	r.Readings, r.ReadingsDropped = reported(s.readings)
	if !s.off { // what panicked may not be asked again
		r.Orphans, r.OrphansDropped = s.detector.Orphans()
	}
	g.mu.Lock()
	r.Notices = slices.Clone(g.notices)
	g.mu.Unlock()
	g.report.Store(r)
	g.sampled.Store(time.Now().UnixNano())
}

// controllers joins what is known of each controller.
func (s *sampler) controllers() []ControllerReport {
	orphans := map[string]int{}
	if !s.off {
		s.detector.OrphansOf(orphans)
	}
	byName := map[string]*ControllerReport{}
	for _, st := range process.scopes.Stats(nil) {
		if isHandlers(st.Scope) {
			continue
		}
		byName[st.Scope] = &ControllerReport{Name: st.Scope, Instrumented: true, Reconciles: st.Begun, InFlight: st.Begun - st.Ended}
	}
	s.guard.mu.Lock()
	for name, instrumented := range s.guard.controllers {
		if byName[name] == nil {
			byName[name] = &ControllerReport{Name: name, Instrumented: instrumented}
		}
	}
	s.guard.mu.Unlock()
	for name := range s.load.controllers { // also of a manager that nobody has wrapped
		if byName[name] == nil {
			byName[name] = &ControllerReport{Name: name}
		}
	}
	for name, c := range byName {
		c.Orphans, c.Breaker = orphans[name], s.guard.breakers.state(name)
	}
	list := make([]ControllerReport, 0, len(byName))
	for _, c := range slices.SortedFunc(maps.Values(byName), func(a, b *ControllerReport) int { return strings.Compare(a.Name, b.Name) }) {
		list = append(list, *c)
	}
	return list
}

// logChanges writes one line when a finding fires and one when it resolves.
func (s *sampler) logChanges(findings []Finding) {
	seen := make(map[string]State, len(findings))
	for i := range findings {
		f := &findings[i]
		seen[f.Fingerprint] = f.State
		if s.states[f.Fingerprint] == f.State {
			continue
		}
		if f.State == StateFiring {
			s.guard.log.Info("leak found", f.logValues()...)
			s.guard.emit(f, "LeakFound")
		}
		if f.State == StateResolved {
			s.guard.log.Info("leak resolved", f.logValues()...)
			s.guard.emit(f, "LeakResolved")
		}
	}
	s.states = seen
}

// breakers lets the breakers see the tick's findings, and says what they did.
func (s *sampler) breakers(now time.Time, findings []Finding) {
	changes := s.guard.breakers.step(leaks{now, findings, s.detector.lasting})
	for i := range changes {
		c := &changes[i]
		s.guard.log.Info("breaker "+c.state, "controller", c.controller, "note", c.note)
		s.guard.put(c.event())
	}
	s.guard.setCondition(now)
}

func (f *Finding) logValues() []any {
	return []any{
		"controller", f.Controller, "count", f.Count, "culprit", f.Culprit.Function, "at", f.Culprit.Position(),
		"waitReason", f.WaitReason, "rule", f.Rule, "tier", f.Tier, "perHour", f.PerHour, "reason", f.Reason, "fingerprint", f.Fingerprint,
	}
}
