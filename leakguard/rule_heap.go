package leakguard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// ruleHeap is about memory that no goroutine waits for: the live heap after collections rises, and live objects and waiting
// work do not explain it.
const ruleHeap = "heap-growth"

const (
	// maxSites is how many culprits of a growing heap become findings of their own.
	maxSites = 3
	// minSiteShare is the least part of the growth that a culprit's sites must carry.
	minSiteShare = 0.2
)

// heapTable follows the live heap, and the allocation sites that carry its growth.
type heapTable struct {
	timing timing
	series *memstats.Series
	judge  *memstats.Judge
	first  time.Time
	base   float64               // the smallest live heap since the warm-up; 0 before its end
	sites  []memstats.SiteGrowth // that carried the growth when it was last known which do, joined by culprit
	wanted bool                  // heap profiles, to name the sites
}

func newHeapTable(t timing) *heapTable {
	thresholds := memstats.ByteThresholds()
	thresholds.Scale = 1 / t.scale
	return &heapTable{timing: t, series: memstats.NewSeries(memstats.Full().Scaled(1 / t.scale)), judge: memstats.NewJudge(thresholds)}
}

// observe takes in the live heap that a collection has found.
func (t *heapTable) observe(now time.Time, live float64) {
	t.series.Add(now, live)
	if t.first.IsZero() {
		t.first = now
	}
	switch {
	case now.Sub(t.first) < t.timing.warmUp:
	case t.base == 0:
		t.base = live
	default:
		t.base = min(t.base, live)
	}
}

// step judges the live heap and names the culprits of its growth.
func (t *heapTable) step(ev *Evidence, load []memstats.Covariate, main string, emit func(signal)) {
	v := t.judge.Judge(t.series, load...)
	asked := t.wanted
	t.wanted = grows(v)
	switch {
	case !t.wanted:
		t.sites = nil
	case asked: // before that there are no profiles to name a site
		t.emit(v, ev, main, emit)
	}
}

// culprits gives the sites that carry the growth, those of one culprit joined into its largest. Between two profiles of a slow
// leak chance may hide them all: those that were known before then still stand, as long as the heap grows.
func (t *heapTable) culprits(ev *Evidence, main string) []memstats.SiteGrowth {
	var joined []memstats.SiteGrowth
	for _, site := range memstats.HeapGrowth(ev.Heaps, memstats.HeapOptions{Main: main}) { // the largest first
		if !site.Steady {
			continue
		}
		i := slices.IndexFunc(joined, func(s memstats.SiteGrowth) bool { return s.Blame.Frame.Function == site.Blame.Frame.Function })
		if i < 0 {
			joined = append(joined, site)
			continue
		}
		have := &joined[i]
		have.Bytes, have.Objects, have.Share = have.Bytes+site.Bytes, have.Objects+site.Objects, have.Share+site.Share
		have.BytesPerHour, have.ObjectsPerHour = have.BytesPerHour+site.BytesPerHour, have.ObjectsPerHour+site.ObjectsPerHour
	}
	joined = slices.DeleteFunc(joined, func(s memstats.SiteGrowth) bool { return s.Share < minSiteShare })
	slices.SortStableFunc(joined, func(a, b memstats.SiteGrowth) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if len(joined) > 0 {
		t.sites = joined[:min(len(joined), maxSites)]
	}
	return t.sites
}

// emit names the culprits of the growth of the live heap; without any it says that there is growth.
func (t *heapTable) emit(v memstats.Verdict, ev *Evidence, main string, emit func(signal)) {
	left, limited := untilLimit(v, ev)
	base := signal{
		rule: ruleHeap, category: "heap-growth", tier: TierLikely, level: levelFiring, count: int64(v.Rise), perHour: v.PerHour,
		since: v.Since, reason: "live heap after a collection: " + v.Reason + describeLimit(left, limited),
		advice: "compare two heap profiles: go tool pprof -base OLD NEW",
		soon:   limited && left.Likely <= t.timing.limitSoon,
	}
	rise := max(0, v.Level-t.base)
	sites := t.culprits(ev, main)
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
		// The profile is an estimate from samples, the live heap is exact: no site has gained more than all have.
		s.spare(min(site.Bytes, rise), ev)
		emit(s)
	}
	if len(sites) == 0 {
		base.culprit = frame.Frame{Function: "live heap"}
		base.pattern = true
		base.spare(rise, ev)
		emit(base)
	}
}

// spare makes the signal of a growth that has gained so many bytes a listed one while that is within the allowance.
func (s *signal) spare(gained float64, ev *Evidence) {
	if allowed := allowance(ev.Memory.LimitBytes); gained < allowed && !s.soon {
		s.tier, s.level = TierListed, levelListed
		s.reason = fmt.Sprintf("listed: %s so far, an alarm from %s on; %s", mebibytes(gained), mebibytes(allowed), s.reason)
	}
}

// mebibytes prints bytes with a decimal, if it is not zero.
func mebibytes(bytes float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", bytes/(1<<20)), ".0") + " MiB"
}

// untilLimit estimates when the process will reach its memory limit; ok is false when it has none or that cannot be told.
func untilLimit(v memstats.Verdict, ev *Evidence) (left memstats.TimeToLimit, ok bool) {
	limit := ev.Memory.LimitBytes
	if limit == 0 || ev.Memory.ResidentBytes == 0 {
		return left, false
	}
	beside := float64(ev.Memory.ResidentBytes) - float64(ev.Memory.HeapLiveBytes) // what the limit counts beside the live heap
	return memstats.EstimateTimeToLimit(v, float64(limit)-max(0, beside))
}

func describeLimit(left memstats.TimeToLimit, ok bool) string {
	if !ok {
		return ""
	}
	text := fmt.Sprintf("; at this rate the memory limit is reached in about %s (from %s", left.Likely.Round(time.Minute), left.Earliest.Round(time.Minute))
	if left.Latest > 0 {
		text += " to " + left.Latest.Round(time.Minute).String()
	}
	return text + ")"
}
