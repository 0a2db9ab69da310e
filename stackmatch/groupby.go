package stackmatch

import (
	"slices"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// GroupBy gives the dump's goroutines as groups with equal stacks and labels, the largest first, equally large ones in
// the order of the dump. Each group's culprit is looked for with main as the path of the main module, "" for unknown.
// The result is the caller's; what the groups share is described at [Group].
func (d *Dump) GroupBy(main string) []Group {
	groups := slices.Clone(d.groups)
	if groups == nil {
		groups = groupGoroutines(d.Goroutines)
	}
	for i := range groups {
		groups[i].blame(main)
	}
	return groups
}

// groupGoroutines groups goroutines that did not come from a reader of this package.
func groupGoroutines(goroutines []Goroutine) []Group {
	t := newTrie()
	var ts tallies
	var labels labelTable
	for i := range goroutines {
		g := &goroutines[i]
		var set *labelSet
		if len(g.Labels) > 0 {
			list := slices.Clone(g.Labels)
			sortLabels(list)
			set = labels.intern(list)
		}
		group := ts.get(t.stack(trimRuntime(g.Stack)), set)
		ts.add(group, g)
		ts.owners = append(ts.owners, group.index)
	}
	return ts.groups()
}

// blame fills in the frames that say who made the group.
func (g *Group) blame(main string) {
	g.Root = frame.Root(g.Stack)
	creator := g.CreatedBy
	if frame.IsSpawner(creator.Function) {
		creator = frame.Frame{}
	}
	f, origin, ok := frame.Culprit(g.Stack, creator, main)
	if ok {
		g.Culprit, g.CulpritOrigin = f, origin
	}
}
