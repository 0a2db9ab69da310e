package leakguard

import (
	"cmp"
	"slices"
	"time"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// maxTracks bounds the findings that are followed at once.
const maxTracks = 1024

// Detector turns evidence into findings. It is pure: equal sequences of Evidence give equal findings, and it neither
// reads a clock nor samples anything. It must be used from one goroutine at a time.
type Detector struct {
	timing    timing
	main      string
	orphans   *orphanTable
	growth    *growthTable
	accounts  accounts
	resources *resourceTable
	stuck     *stuckTable
	proofs    proofs
	hung      *hungTable
	tracks    map[string]*track // by fingerprint
	naming    naming
	joining   joining
	wantDump  bool
	overflow  uint64
}

// NewDetector gives a detector without a past. Of the options it uses Interval, Grace, Scale, MainModule and Rules.
func NewDetector(o Options) (*Detector, error) {
	o.setDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	return newDetector(&o), nil
}

// newDetector takes options that are complete and valid.
func newDetector(o *Options) *Detector {
	t := newTiming(o)
	return &Detector{
		timing: t, main: o.MainModule,
		orphans: newOrphanTable(t, o.MainModule), growth: newGrowthTable(t, o.MainModule),
		accounts: accounts{byKey: map[accountKey]*account{}}, resources: newResourceTable(t),
		stuck: newStuckTable(t, o.MainModule), proofs: proofs{byKey: map[placeKey]*proof{}}, hung: newHungTable(t, o.MainModule), tracks: map[string]*track{},
		naming: newNaming(o.Rules, o.MainModule), joining: joining{joined: map[string]time.Time{}},
	}
}

// Step takes in one tick and gives all findings, ordered by state (firing, pending, listed, resolved), then by count,
// largest first. The result and its stacks are immutable.
func (d *Detector) Step(ev Evidence) []Finding {
	d.orphans.observe(&ev)
	d.growth.observe(&ev)
	d.resources.observe(&ev)
	d.stuck.observe(&ev)
	signals := map[string]*signal{}
	emit := func(s signal) { d.collect(signals, s) }
	judgeOrphans(d.orphans, ev.At, emit)
	judgeGone(d.orphans, ev.Objects, ev.At, emit)
	d.hung.judge(&ev, emit)
	d.wantDump = judgeGrowth(d.growth, &ev, emit)
	d.wantDump = d.stuck.judge(&ev, emit) || d.wantDump
	d.accounts.judge(ev.Readings, ev.At, emit)
	d.resources.judge(&ev, d.main, emit)
	d.proofs.judge(&ev, d.main, emit)
	d.join(signals, ev.At)
	d.naming.name(signals, ev.Groups)
	return d.advance(signals, &ev)
}

// NeedsDump reports whether a full dump, handed in with the next Evidence, would decide a finding.
func (d *Detector) NeedsDump() bool { return d.wantDump }

// NeedsHeaps reports whether heap profiles, handed in with the next Evidence, would name the sites of a growing heap.
func (d *Detector) NeedsHeaps() bool { return d.resources.heap.wanted }

// Orphans gives how many goroutines of ended reconciles the last tick saw, and how many found no room in the table.
func (d *Detector) Orphans() (alive int, dropped uint64) { return d.orphans.total, d.orphans.dropped }

// OrphansOf adds the number of orphans by controller to dst.
func (d *Detector) OrphansOf(dst map[string]int) {
	for key, p := range d.orphans.places {
		if !p.unknown {
			dst[key.controller] += p.goroutines
		}
	}
}

// lasting gives how much of what a finding counts is past the grace, so that it is not about to end.
func (d *Detector) lasting(f *Finding) int64 {
	if tr := d.tracks[f.Fingerprint]; tr != nil {
		return tr.lasting
	}
	return 0
}

// collect joins signals about one culprit of one controller: the strongest speaks.
func (d *Detector) collect(signals map[string]*signal, s signal) {
	name := fingerprint(kindOf(s.category), s.culprit.Function, s.controller)
	have := signals[name]
	if have == nil {
		signals[name] = &s
		return
	}
	weak := s
	if s.stronger(have) {
		weak, *have = *have, s
	}
	have.settled, have.parts = max(have.settled, weak.settled), append(have.parts, weak.parts...)
	have.owned += weak.owned
	if weak.level == have.level && weak.count > have.count { // equally sure: the larger count holds the smaller one's goroutines
		have.count, have.young = weak.count, weak.young
	}
	if weak.since.Before(have.since) {
		have.since = weak.since
	}
}

// The category of orphans, and the kind of all that are about goroutines.
const (
	orphanCategory = "goroutine-orphaned"
	goroutineKind  = "goroutine"
)

// kindOf joins the categories that are about the same goroutines, or the same connections, so that several rules about one
// culprit make one finding.
func kindOf(category string) string {
	switch category {
	case orphanCategory, "goroutine-growth", "goroutine-stuck", "goroutine-unreachable", "goroutine-outlives", "reconcile-hung":
		return goroutineKind
	case clientgo.TransportCacheName:
		return probes.TransportName
	}
	return category
}

// advance moves every track on and gives the findings.
func (d *Detector) advance(signals map[string]*signal, ev *Evidence) []Finding {
	for name, s := range signals {
		if d.tracks[name] != nil {
			continue
		}
		if len(d.tracks) >= maxTracks {
			d.overflow++
			continue
		}
		d.tracks[name] = &track{finding: Finding{
			Schema: FindingSchema, Fingerprint: name, Category: s.category, Controller: s.controller, FirstSeen: s.since,
		}}
	}
	findings := make([]Finding, 0, len(d.tracks))
	for name, tr := range d.tracks {
		if !tr.update(signals[name], ev.At, d.timing) {
			delete(d.tracks, name)
			continue
		}
		findings = append(findings, tr.finding)
	}
	slices.SortFunc(findings, compareFindings)
	return findings
}

func compareFindings(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.State.rank(), b.State.rank()), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Fingerprint, b.Fingerprint))
}

func (s State) rank() int { return slices.Index(states[:], s) }

// states in the order in which findings are shown.
var states = [...]State{StateFiring, StatePending, StateListed, StateResolved}
