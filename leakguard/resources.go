package leakguard

import (
	"math"
	"slices"
	"time"

	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/probes"
)

// ruleCounter is about resources that are counted and not seen on a stack.
const ruleCounter = "counter"

// maxResources bounds the readings of probes that are followed.
const maxResources = 512

// resourceTable follows the process's own numbers and the counts of probes through bounded series, and asks whether they
// grow for ever. Live objects explain growth; reconciles do not.
type resourceTable struct {
	objects  *memstats.Series
	depth    *memstats.Series // of the workqueues
	waiting  *memstats.Series // seconds in the workqueues
	taking   *memstats.Series // seconds in reconciles
	heap     *heapTable
	creation *creation
	byKey    map[accountKey]*resource
	compact  *memstats.Layout
	counts   *memstats.Judge
	last     memstats.Sample
	dropped  uint64
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

func newResourceTable(t timing) *resourceTable {
	factor := 1 / t.scale // by how much all times are shorter
	full := memstats.Full().Scaled(factor)
	return &resourceTable{
		heap: newHeapTable(t), creation: newCreation(t), compact: memstats.Compact().Scaled(factor), objects: memstats.NewSeries(full),
		depth: memstats.NewSeries(full), waiting: memstats.NewSeries(full), taking: memstats.NewSeries(full), byKey: map[accountKey]*resource{},
		counts: memstats.NewJudge(memstats.Thresholds{Scale: factor}),
	}
}

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
			t.heap.observe(ev.At, float64(ev.Memory.HeapLiveBytes))
		}
		t.last = ev.Memory
	}
	for i := range ev.Readings {
		if r := &ev.Readings[i]; r.Resource == createdRate {
			t.creation.observe(r, ev)
		} else {
			t.take(r, ev.At)
		}
	}
}

// take follows a reading that is not a leak by itself, and of which more may be one.
func (t *resourceTable) take(r *probes.Reading, now time.Time) {
	if r.Leaked || r.Bounded || r.Shown {
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

// judge gives the signals of what grows.
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
		if v := t.counts.Judge(r.series, covariates...); grows(v) && v.Rise >= chance*math.Sqrt(v.Level) {
			emit(r.signal(v))
		}
	}
	t.creation.step(ev, emit)
	t.heap.step(ev, load, main, emit)
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

// chance is how many times the root of a count its rise must be. The number of things that come and go varies by that root
// (Poisson), and is high or low for as long as they live. Of a hundred that live for an hour each, one trend in two days was a
// rise of ten to twenty and nothing else.
const chance = 5

// grows reports whether a verdict is one to alarm about.
func grows(v memstats.Verdict) bool { return v.Outcome == memstats.Leak }

func (r *resource) signal(v memstats.Verdict) signal {
	s := signal{
		rule: ruleCounter, category: r.category, resource: r.what, settled: int(v.Rise), tier: TierLikely, level: levelFiring, controller: r.reading.Scope,
		culprit: r.reading.Culprit, count: int64(v.Level), perHour: v.PerHour, since: v.Since, trap: r.trap, advice: r.advice, stack: r.reading.Stack,
		reason: r.what + ": " + v.Reason,
	}
	if r.reading.Reason != "" {
		s.reason = r.reading.Reason + "; " + s.reason
	}
	if r.reading.Total || r.what == transportsCached {
		s.tier, s.level = TierListed, levelListed
	}
	if s.culprit.IsZero() {
		s.culprit.Function, s.pattern = r.what, true
	}
	return s
}

// transportsCached is a count whose growth is not certain enough to alarm: they may be one for each of ever more tenants.
const transportsCached = "client transports cached"
