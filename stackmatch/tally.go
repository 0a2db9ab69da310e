package stackmatch

import (
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// labelSet is a distinct set of labels; the pointer stands for it.
type labelSet struct {
	labels []Label
	hash   uint64
	age    uint64 // of the profile that had it last
}

// tally counts the goroutines of one group while a dump is read.
type tally struct {
	stack    *stack
	labels   *labelSet // nil for none
	count    int
	leaked   int
	reasons  []counted[string]
	creators []counted[frame.Frame]
	minutes  map[int32]int // how many have waited how long, see waitList
	oldest   time.Duration
	median   time.Duration
	members  []int
	index    int32 // in tallies
}

type counted[T comparable] struct {
	value T
	count int
}

// count adds n to the number of times that v was seen. The list is short: a stack has few wait reasons and creators.
func count[T comparable](list []counted[T], v T, n int) []counted[T] {
	for i := range list {
		if list[i].value == v {
			list[i].count += n
			return list
		}
	}
	if len(list) == maxVariants {
		return list
	}
	return append(list, counted[T]{v, n})
}

// maxVariants bounds how many wait reasons and creators of one stack are told apart.
const maxVariants = 16

// most gives the value seen most often, the first of those seen equally often.
func most[T comparable](list []counted[T]) (v T) {
	best := 0
	for i := range list {
		if list[i].count > best {
			v, best = list[i].value, list[i].count
		}
	}
	return v
}

// tallies is the groups of one dump.
type tallies struct {
	byKey map[tallyKey]*tally
	list  []*tally
	slab  []tally
	// owners is the index of each goroutine's tally, in the order of the dump, when members are wanted.
	owners []int32
	waits  waitList
	// Memory for the short lists of tallies.
	reasons  []counted[string]
	creators []counted[frame.Frame]
}

type tallyKey struct {
	stack  *stack
	labels *labelSet
}

func (ts *tallies) get(s *stack, labels *labelSet) *tally {
	if s.last != nil && s.last.labels == labels {
		return s.last
	}
	t := ts.find(s, labels)
	if t == nil {
		t = ts.make()
		t.stack, t.labels, t.index = s, labels, int32(len(ts.list))
		ts.list = append(ts.list, t)
		if ts.byKey != nil {
			ts.byKey[tallyKey{s, labels}] = t
		}
	}
	s.last = t
	return t
}

// maxUnindexed is how many groups a dump has before they get an index, which small dumps do not need.
const maxUnindexed = 8

func (ts *tallies) find(s *stack, labels *labelSet) *tally {
	if ts.byKey != nil {
		return ts.byKey[tallyKey{s, labels}]
	}
	for _, t := range ts.list {
		if t.stack == s && t.labels == labels {
			return t
		}
	}
	if len(ts.list) == maxUnindexed {
		ts.byKey = make(map[tallyKey]*tally, 4*maxUnindexed)
		for _, t := range ts.list {
			ts.byKey[tallyKey{t.stack, t.labels}] = t
		}
	}
	return nil
}

// make takes a tally, with room for two wait reasons and a creator, from memory that is allocated for many.
func (ts *tallies) make() *tally {
	if len(ts.slab) == 0 {
		n := min(max(len(ts.list), 2), 256)
		ts.slab = make([]tally, n)
		ts.reasons, ts.creators = make([]counted[string], 2*n), make([]counted[frame.Frame], n)
	}
	t := &ts.slab[0]
	t.reasons, t.creators = ts.reasons[:0:2], ts.creators[:0:1]
	ts.slab, ts.reasons, ts.creators = ts.slab[1:], ts.reasons[2:], ts.creators[1:]
	return t
}

// add counts a goroutine.
func (ts *tallies) add(t *tally, g *Goroutine) {
	t.count++
	if g.Leaked {
		t.leaked++
	}
	t.reasons = count(t.reasons, g.WaitReason, 1)
	if !g.CreatedBy.IsZero() {
		t.creators = count(t.creators, g.CreatedBy, 1)
	}
	if g.Wait > 0 {
		ts.waits.add(t.index, g.Wait, ts.list)
	}
}

// groups gives the finished groups, the largest first. Equally large ones stay in the order of the dump.
func (ts *tallies) groups() []Group {
	ts.assign()
	ts.waits.finish(ts.list)
	groups := make([]Group, len(ts.list))
	for i, t := range ts.list {
		groups[i] = t.group()
		t.stack.last = nil // it belongs to this dump
	}
	sortGroups(groups)
	return groups
}

// assign gives the groups their members, all in one piece of memory.
func (ts *tallies) assign() {
	if len(ts.owners) == 0 {
		return
	}
	members := make([]int, len(ts.owners))
	for _, t := range ts.list {
		t.members, members = members[:0:t.count], members[t.count:]
	}
	for i, owner := range ts.owners {
		t := ts.list[owner]
		t.members = append(t.members, i)
	}
}

func (t *tally) group() Group {
	g := Group{
		ID: t.stack.hash, Stack: t.stack.frames, Count: t.count, Leaked: t.leaked, Members: t.members, Oldest: t.oldest, Median: t.median,
		WaitReason: most(t.reasons), CreatedBy: most(t.creators),
	}
	if t.labels != nil {
		g.ID, g.Labels = mix(g.ID, t.labels.hash), t.labels.labels
	}
	return g
}

func sortGroups(groups []Group) {
	slices.SortStableFunc(groups, func(a, b Group) int { return b.Count - a.Count })
}

func labelText(labels []Label) string {
	var b strings.Builder
	for _, l := range labels {
		b.WriteString(l.Key)
		b.WriteByte('=')
		b.WriteString(l.Value)
		b.WriteByte(0)
	}
	return b.String()
}
