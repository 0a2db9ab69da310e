package stackmatch

import (
	"slices"
	"strings"

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
	waits    waitCounts
	members  []int
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
}

type tallyKey struct {
	stack  *stack
	labels *labelSet
}

func (ts *tallies) get(s *stack, labels *labelSet) *tally {
	if s.last != nil && s.last.labels == labels {
		return s.last
	}
	key := tallyKey{s, labels}
	t := ts.byKey[key]
	if t == nil {
		if ts.byKey == nil {
			ts.byKey = map[tallyKey]*tally{}
		}
		if len(ts.slab) == 0 {
			ts.slab = make([]tally, min(max(len(ts.list), 8), 256))
		}
		t, ts.slab = &ts.slab[0], ts.slab[1:]
		t.stack, t.labels = s, labels
		ts.byKey[key] = t
		ts.list = append(ts.list, t)
	}
	s.last = t
	return t
}

// groups gives the finished groups, the largest first. Equally large ones stay in the order of the dump.
func (ts *tallies) groups() []Group {
	groups := make([]Group, len(ts.list))
	for i, t := range ts.list {
		groups[i] = t.group()
		t.stack.last = nil // it belongs to this dump
	}
	sortGroups(groups)
	return groups
}

func (t *tally) group() Group {
	g := Group{
		ID: t.stack.hash, Stack: t.stack.frames, Count: t.count, Leaked: t.leaked, Members: t.members,
		WaitReason: most(t.reasons), CreatedBy: most(t.creators),
	}
	if t.labels != nil {
		g.ID, g.Labels = mix(g.ID, t.labels.hash), t.labels.labels
	}
	g.Oldest, g.Median = t.waits.oldestAndMedian()
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
