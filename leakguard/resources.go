package leakguard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// The rules about resources that are counted and not seen on a stack.
const (
	ruleHeap    = "heap-growth"
	ruleCounter = "counter"
)

// maxResources bounds the readings of probes that are followed.
const maxResources = 512

// resourceTable follows the process's own numbers and the counts of probes through bounded series, and asks whether they
// grow for ever. Live objects explain growth; reconciles do not.
type resourceTable struct {
	scale     float64 // how much shorter all times are: 1/Options.Scale
	objects   *memstats.Series
	depth     *memstats.Series // of the workqueues
	waiting   *memstats.Series // seconds in the workqueues
	taking    *memstats.Series // seconds in reconciles
	heap      *resource
	byKey     map[accountKey]*resource
	compact   *memstats.Layout
	counts    *memstats.Judge
	bytes     *memstats.Judge
	last      memstats.Sample
	dropped   uint64
	wantHeaps bool
	sites     []memstats.SiteGrowth // that carried the growth of the heap when it was last known which do
}

// resource is one number over time.
type resource struct {
	category string
	what     string // "open files"
	advice   string
	trap     string

	series    *memstats.Series
	covariate *memstats.Series
	reading   probes.Reading
	seen      time.Time
}

func newResourceTable(scale float64) *resourceTable {
	factor := 1 / scale
	full := memstats.Full().Scaled(factor)
	bytes := memstats.ByteThresholds()
	bytes.Scale = factor
	t := &resourceTable{
		scale: factor, compact: memstats.Compact().Scaled(factor), objects: memstats.NewSeries(full),
		depth: memstats.NewSeries(full), waiting: memstats.NewSeries(full), taking: memstats.NewSeries(full), byKey: map[accountKey]*resource{},
		counts: memstats.NewJudge(memstats.Thresholds{Scale: factor}), bytes: memstats.NewJudge(bytes),
		heap: &resource{series: memstats.NewSeries(full)},
	}
	return t
}

// listedOnly are the counts whose growth is not certain enough to alarm: more load starts more goroutines too.
var listedOnly = map[string]bool{"goroutines created a minute": true}

// observe takes in one tick's numbers.
func (t *resourceTable) observe(ev *Evidence) {
	t.objects.Add(ev.At, float64(ev.liveObjects()))
	if ev.Load.Known {
		t.depth.Add(ev.At, ev.Load.QueueDepth)
		t.waiting.Add(ev.At, ev.Load.QueueSeconds)
		t.taking.Add(ev.At, ev.Load.ReconcileSeconds)
	}
	if !ev.Memory.Time.IsZero() {
		if ev.Memory.NumGC > t.last.NumGC { // the live heap is known once a cycle
			t.heap.series.Add(ev.At, float64(ev.Memory.HeapLiveBytes))
		}
		t.last = ev.Memory
	}
	for i := range ev.Readings {
		t.take(&ev.Readings[i], ev.At)
	}
}

// take follows a reading that is not a leak by itself.
func (t *resourceTable) take(r *probes.Reading, now time.Time) {
	if r.Leaked {
		return
	}
	key := accountKey{r.Probe, r.Resource, r.Scope, r.Culprit.Function}
	res := t.byKey[key]
	if res == nil {
		if len(t.byKey) >= maxResources {
			t.dropped++
			return
		}
		res = &resource{category: r.Probe, series: memstats.NewSeries(t.compact)}
		t.byKey[key] = res
	}
	res.what, res.advice, res.trap, res.reading, res.seen = r.Resource, r.Advice, r.Trap, *r, now
	res.series.Add(now, r.Count)
	if r.Covariate >= 0 {
		if res.covariate == nil {
			res.covariate = memstats.NewSeries(t.compact)
		}
		res.covariate.Add(now, r.Covariate)
	}
}

// judge gives the signals of what grows, and reports whether heap profiles are wanted to name the sites.
func (t *resourceTable) judge(ev *Evidence, main string, emit func(signal)) {
	load := t.load()
	for key, r := range t.byKey {
		if !r.seen.Equal(ev.At) {
			delete(t.byKey, key)
			continue
		}
		covariates := slices.Clone(load)
		if r.covariate != nil {
			covariates = append(covariates, memstats.Covariate{Name: "what explains it", Kind: memstats.Load, Series: r.covariate})
		}
		if v := t.counts.Judge(r.series, covariates...); grows(v) {
			emit(r.signal(v))
		}
	}
	v := t.bytes.Judge(t.heap.series, load...)
	asked := t.wantHeaps
	t.wantHeaps = grows(v)
	switch {
	case !t.wantHeaps:
		t.sites = nil
	case asked: // before that there are no profiles to name a site
		t.emitHeap(v, ev, main, emit)
	}
}

// load is what may explain growth: live objects, and the work that waits for the operator.
func (t *resourceTable) load() []memstats.Covariate {
	list := []memstats.Covariate{{Name: "live objects", Kind: memstats.Load, Series: t.objects}}
	if t.depth.Samples() > 0 {
		list = append(list, memstats.Covariate{Name: "workqueue depth", Kind: memstats.Load, Series: t.depth},
			memstats.Covariate{Name: "time in the workqueue", Kind: memstats.Load, Series: t.waiting},
			memstats.Covariate{Name: "reconcile duration", Kind: memstats.Load, Series: t.taking})
	}
	return list
}

// grows reports whether a verdict is one to alarm about.
func grows(v memstats.Verdict) bool { return v.Outcome == memstats.Leak }

func (r *resource) signal(v memstats.Verdict) signal {
	s := signal{
		rule: ruleCounter, category: r.category, tier: TierLikely, level: levelFiring, controller: r.reading.Scope,
		culprit: r.reading.Culprit, count: int64(v.Level), perHour: v.PerHour, since: v.Since, trap: r.trap, advice: r.advice, stack: r.reading.Stack,
		reason: r.what + ": " + v.Reason,
	}
	if listedOnly[r.what] {
		s.tier, s.level = TierListed, levelListed
	}
	if s.culprit.IsZero() {
		s.culprit.Function, s.pattern = r.what, true
	}
	return s
}

// maxSites is how many allocation sites of a growing heap become findings of their own.
const maxSites = 3

// minSiteShare is the least part of the growth that a site must carry to be one.
const minSiteShare = 0.2

// growingSites gives the sites that carry the growth. Between two profiles of a slow leak chance may hide them all: those
// that were known before then still stand, as long as the heap grows.
func (t *resourceTable) growingSites(ev *Evidence, main string) []memstats.SiteGrowth {
	sites := memstats.HeapGrowth(ev.Heaps, memstats.HeapOptions{Main: main})
	sites = slices.DeleteFunc(sites, func(s memstats.SiteGrowth) bool { return s.Share < minSiteShare || !s.Steady })
	slices.SortStableFunc(sites, func(a, b memstats.SiteGrowth) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if len(sites) > 0 {
		t.sites = sites[:min(len(sites), maxSites)]
	}
	return t.sites
}

// emitHeap names the allocation sites that carry the growth of the live heap; without any it says that there is growth.
func (t *resourceTable) emitHeap(v memstats.Verdict, ev *Evidence, main string, emit func(signal)) {
	base := signal{
		rule: ruleHeap, category: "heap-growth", tier: TierLikely, level: levelFiring, count: int64(v.Rise), perHour: v.PerHour,
		since: v.Since, reason: "live heap after a collection: " + v.Reason + untilLimit(v, ev),
		advice: "compare two heap profiles: go tool pprof -base OLD NEW",
	}
	sites := t.growingSites(ev, main)
	for _, site := range sites {
		s := base
		s.culprit, s.stack = site.Blame.Frame, site.Stack
		s.count, s.perHour = int64(site.Bytes), site.BytesPerHour
		s.reason = fmt.Sprintf("%.0f%% of the growth of the heap is allocated here, %.0f objects; %s", 100*site.Share, site.Objects, base.reason)
		if h := site.Hint; h.Name != "" {
			s.reason += "; " + h.Known + "; " + h.Unknown
			s.advice, s.trap = h.Advice, h.Trap
		}
		s.pattern = !site.Blame.Owner
		emit(s)
	}
	if len(sites) == 0 {
		base.culprit = frame.Frame{Function: "live heap"}
		base.pattern = true
		emit(base)
	}
}

// untilLimit says when the process will reach its memory limit, when there is one.
func untilLimit(v memstats.Verdict, ev *Evidence) string {
	limit := ev.Memory.LimitBytes
	if limit == 0 || ev.Memory.ResidentBytes == 0 {
		return ""
	}
	beside := float64(ev.Memory.ResidentBytes) - float64(ev.Memory.HeapLiveBytes) // what the limit counts beside the live heap
	left, ok := memstats.EstimateTimeToLimit(v, float64(limit)-max(0, beside))
	if !ok {
		return ""
	}
	text := fmt.Sprintf("; at this rate the memory limit is reached in about %s (from %s", left.Likely.Round(time.Minute), left.Earliest.Round(time.Minute))
	if left.Latest > 0 {
		text += " to " + left.Latest.Round(time.Minute).String()
	}
	return text + ")"
}
