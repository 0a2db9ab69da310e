package memstats

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// HeapOptions configures the reading of heap profiles in time order.
type HeapOptions struct {
	// Main is the path of the operator's main module, see [frame.MainModule]; empty when it is not known.
	Main string
	// Every is the time between profiles that do not carry their own; zero leaves rates at zero.
	Every time.Duration
	// MinShare is the least part of the growth of the whole heap that a site must carry to be reported; default 0.05,
	// negative for none.
	MinShare float64
}

// SiteGrowth is a site that grew.
type SiteGrowth struct {
	Site
	// Bytes and Objects are by how much it grew from the first to the last profile.
	Bytes, Objects float64
	// BytesPerHour and ObjectsPerHour are zero when no time is known.
	BytesPerHour, ObjectsPerHour float64
	// Share is its part of the growth of all sites that grew.
	Share float64
	// Steady says that it grew from each profile to the next, over three profiles or more: two can differ by chance
	// of load.
	Steady bool
	// Times is by how much it multiplied, from a first value of at least one sample.
	Times float64
	// Blame is the frame to look at.
	Blame Blame
	// Hint is what a telling frame says.
	Hint Hint
}

// HeapGrowth compares heap profiles in time order and gives the sites that carry the growth, largest first. A site
// counts when the growth is larger than what sampling makes by chance (four standard deviations of its sampled
// counts), carries MinShare of the growth, and never fell by more than a quarter of it. Fewer than two profiles give
// nothing.
func HeapGrowth(profiles []*Heap, options HeapOptions) []SiteGrowth {
	if len(profiles) < 2 {
		return nil
	}
	if options.MinShare == 0 {
		options.MinShare = 0.05
	}
	rows := siteRows(profiles)
	var grown float64
	for _, r := range rows {
		grown += max(0, r.last().InuseBytes-r.first().InuseBytes)
	}
	hours := profileHours(profiles, options.Every)
	var all []SiteGrowth
	for _, r := range rows {
		if g, ok := r.growth(options.Main, hours); ok {
			if g.Share = g.Bytes / max(grown, 1); g.Share >= options.MinShare {
				all = append(all, g)
			}
		}
	}
	slices.SortFunc(all, func(a, b SiteGrowth) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all
}

// SitePair is one stack in two profiles. Where a profile does not have it, that side is zero.
type SitePair struct {
	// Stack is the allocating stack, leaf first.
	Stack []frame.Frame
	// First and Last are what it allocated until the one profile and until the other.
	First, Last Site
}

// PairSites joins two profiles by stack, in the order in which the profiles have the stacks. A profile has a row for each
// size that a stack allocates, so rows must be joined before they are compared. It takes time proportional to the rows.
func PairSites(first, last *Heap) []SitePair {
	rows := siteRows([]*Heap{first, last})
	pairs := make([]SitePair, 0, len(rows))
	for _, r := range rows {
		pair := SitePair{Stack: r.first().Stack, First: *r.first(), Last: *r.last()}
		if len(pair.Stack) == 0 {
			pair.Stack = r.last().Stack
		}
		pairs = append(pairs, pair)
	}
	return pairs
}

// siteRow is one stack in every profile.
type siteRow struct {
	key  string
	cols []Site
}

func (r *siteRow) first() *Site { return &r.cols[0] }

func (r *siteRow) last() *Site { return &r.cols[len(r.cols)-1] }

// siteRows joins the profiles by stack. Stacks that differ only in program counters are one.
func siteRows(profiles []*Heap) []*siteRow {
	index := map[string]*siteRow{}
	var rows []*siteRow
	for k, p := range profiles {
		for i := range p.Sites {
			s := &p.Sites[i]
			key := stackKey(s.Stack)
			row := index[key]
			if row == nil {
				row = &siteRow{key: key, cols: make([]Site, len(profiles))}
				index[key] = row
				rows = append(rows, row)
			}
			row.cols[k].add(s)
		}
	}
	return rows
}

func (s *Site) add(o *Site) {
	s.Stack = o.Stack
	s.InuseBytes += o.InuseBytes
	s.InuseObjects += o.InuseObjects
	s.AllocBytes += o.AllocBytes
	s.AllocObjects += o.AllocObjects
	s.Sampled += o.Sampled
}

func stackKey(stack []frame.Frame) string {
	var b strings.Builder
	for _, f := range stack {
		b.WriteString(f.Function)
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(f.Line))
		b.WriteByte('\n')
	}
	return b.String()
}

// growth tests one site.
func (r *siteRow) growth(main string, hours float64) (SiteGrowth, bool) {
	first, last := r.first(), r.last()
	g := SiteGrowth{Site: *last, Bytes: last.InuseBytes - first.InuseBytes, Objects: last.InuseObjects - first.InuseObjects}
	chance := 4 * math.Sqrt(last.Sampled+first.Sampled)
	if g.Bytes <= 0 || last.Sampled-first.Sampled < max(4, chance) {
		return g, false
	}
	g.Steady = len(r.cols) >= 3
	for k := 1; k < len(r.cols); k++ {
		step := r.cols[k].InuseBytes - r.cols[k-1].InuseBytes
		if step <= 0 {
			g.Steady = false
		}
		if -step > 0.25*g.Bytes {
			return g, false
		}
	}
	perObject := last.InuseBytes / max(last.InuseObjects, 1)
	g.Times = last.InuseBytes / max(first.InuseBytes, perObject)
	if hours > 0 {
		g.BytesPerHour, g.ObjectsPerHour = g.Bytes/hours, g.Objects/hours
	}
	g.Blame, g.Hint = BlameSite(last.Stack, main), HintOf(last.Stack)
	return g, true
}

// profileHours is the time from the first to the last profile, zero when it is not known.
func profileHours(profiles []*Heap, every time.Duration) float64 {
	first, last := profiles[0].Time, profiles[len(profiles)-1].Time
	if !first.IsZero() && last.After(first) {
		return last.Sub(first).Hours()
	}
	return (time.Duration(len(profiles)-1) * every).Hours()
}
