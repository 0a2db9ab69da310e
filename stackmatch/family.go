package stackmatch

import (
	"slices"
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Family is groups that belong to one thing: an informer handler's run and pop, the read and write loop of a connection,
// the goroutines of one client.
type Family struct {
	// Name is what the thing is: "HTTP connection"; for groups that only look related, the leader's root function.
	Name string
	// Leader is the index of the group that stands for it.
	Leader int
	// Groups are the indexes of all its groups, the leader first, the others ascending.
	Groups []int
	// Count is how many things there are: how many connections, informers, clients.
	Count int
	// Goroutines is how many goroutines they have together.
	Goroutines int
}

// Families joins groups that belong together: those of kinds that every operator has, with their counts in the right
// ratio, and then those with one count of at least 10 that were started by each other or by the same function, or whose
// roots are in the same package outside the standard library. Groups that belong to nothing are left out. The largest
// family comes first.
//
// Only groups with the same labels are joined. The groups must come from [Dump.GroupBy] or [ProfileReader.Read].
func Families(groups []Group) []Family {
	b := familyBuilder{groups: groups, taken: make([]bool, len(groups))}
	for k := range familyKinds {
		b.kind(&familyKinds[k])
	}
	b.alike()
	slices.SortStableFunc(b.families, func(x, y Family) int { return y.Goroutines - x.Goroutines })
	return b.families
}

type familyBuilder struct {
	groups   []Group
	taken    []bool
	families []Family
}

// kind finds the families of one kind.
func (b *familyBuilder) kind(k *familyKind) {
	parts := make([][]int, len(k.parts))
	for i := range b.groups {
		if b.taken[i] {
			continue
		}
		if p := k.partOf(b.groups[i].Stack); p >= 0 {
			parts[p] = append(parts[p], i)
		}
	}
	for _, leader := range parts[0] {
		b.lead(k, parts, []int{leader})
	}
	b.lead(k, parts, b.free(parts[0]))
}

// free leaves out the groups that are in a family already.
func (b *familyBuilder) free(indexes []int) []int {
	var left []int
	for _, i := range indexes {
		if !b.taken[i] {
			left = append(left, i)
		}
	}
	return left
}

// lead makes a family of leaders and those other parts whose counts fit, if there are any.
func (b *familyBuilder) lead(k *familyKind, parts [][]int, leaders []int) {
	if len(leaders) == 0 {
		return
	}
	units := b.sum(leaders) / k.parts[0].perUnit
	members := slices.Clone(leaders)
	for p := 1; p < len(parts); p++ {
		members = append(members, b.part(parts[p], leaders[0], units*k.parts[p].perUnit)...)
	}
	if len(members) > len(leaders) {
		b.add(k.name, units, members)
	}
}

// part gives the groups of a part that have the wanted count: one of them, or all together.
func (b *familyBuilder) part(indexes []int, leader, want int) []int {
	var same []int
	for _, i := range indexes {
		if !b.taken[i] && slices.Equal(b.groups[i].Labels, b.groups[leader].Labels) {
			same = append(same, i)
		}
	}
	for _, i := range same {
		if b.groups[i].Count == want {
			return []int{i}
		}
	}
	if slack := max(1, want/20); len(same) > 0 && abs(b.sum(same)-want) <= slack {
		return same
	}
	return nil
}

func (b *familyBuilder) sum(indexes []int) (n int) {
	for _, i := range indexes {
		n += b.groups[i].Count
	}
	return n
}

func (b *familyBuilder) add(name string, units int, members []int) {
	for _, i := range members {
		b.taken[i] = true
	}
	slices.Sort(members[1:])
	b.families = append(b.families, Family{
		Name: name, Leader: members[0], Groups: members, Count: units, Goroutines: b.sum(members),
	})
}

// minAlike is from which count on an equal count of related groups is no accident.
const minAlike = 10

// alike joins what is left by equal counts and common origin.
func (b *familyBuilder) alike() {
	byCount := map[int][]int{}
	for i := range b.groups {
		if n := b.groups[i].Count; !b.taken[i] && n >= minAlike {
			byCount[n] = append(byCount[n], i)
		}
	}
	for i := range b.groups {
		peers := byCount[b.groups[i].Count]
		if b.taken[i] || len(peers) < 2 || len(peers) > maxAlike {
			continue
		}
		if members := b.connected(i, peers); len(members) > 1 {
			b.lift(members)
			b.add(rootOf(&b.groups[members[0]]), b.groups[i].Count, members)
		}
	}
}

// maxAlike bounds the work for input in which very many groups have one count; such a count says nothing.
const maxAlike = 64

// connected gives group i and those peers that are related to it or to one of those.
func (b *familyBuilder) connected(i int, peers []int) []int {
	members := []int{i}
	for next := 0; next < len(members); next++ {
		for _, p := range peers {
			if !b.taken[p] && !slices.Contains(members, p) && sameOrigin(&b.groups[members[next]], &b.groups[p]) {
				members = append(members, p)
			}
		}
	}
	return members
}

// lift puts the group first that says most about who is to blame: the one whose culprit is nearest to the main module,
// of several the one that was not started by another of them.
func (b *familyBuilder) lift(members []int) {
	best := 0
	for m := 1; m < len(members); m++ {
		if b.rank(members[m], members) > b.rank(members[best], members) {
			best = m
		}
	}
	members[0], members[best] = members[best], members[0]
}

func (b *familyBuilder) rank(i int, members []int) int {
	g := &b.groups[i]
	rank := 0
	if !g.Culprit.IsZero() {
		rank = 2 * int(g.CulpritOrigin)
	}
	for _, m := range members {
		if m != i && begunBy(g, &b.groups[m]) {
			return rank
		}
	}
	return rank + 1
}

func sameOrigin(a, b *Group) bool {
	if !slices.Equal(a.Labels, b.Labels) {
		return false
	}
	if !a.CreatedBy.IsZero() && !frame.IsSpawner(a.CreatedBy.Function) && a.CreatedBy.Function == b.CreatedBy.Function {
		return true
	}
	if begunBy(a, b) || begunBy(b, a) {
		return true
	}
	pkg := frame.Package(rootOf(a))
	return pkg != "" && !frame.IsStandard(pkg) && pkg == frame.Package(rootOf(b))
}

// begunBy reports whether a's creator is a function on b's stack.
func begunBy(a, b *Group) bool {
	creator := a.CreatedBy.Function
	if creator == "" || frame.IsSpawner(creator) {
		return false
	}
	return slices.ContainsFunc(b.Stack, func(f frame.Frame) bool { return f.Function == creator })
}

func rootOf(g *Group) string { return frame.Root(g.Stack).Function }

// partOf gives the part of a kind that has a function of the stack, or a closure of one; the part with the longest name
// when several have. It is -1 for none.
func (k *familyKind) partOf(stack []frame.Frame) int {
	part, longest := -1, 0
	for i := range stack {
		name := withoutVendor(stack[i].Function)
		for p := range k.parts {
			for _, f := range k.parts[p].functions {
				if len(f) > longest && isOrInside(name, f) {
					part, longest = p, len(f)
				}
			}
		}
	}
	return part
}

// isOrInside reports whether a name is a function's or that of a closure in it.
func isOrInside(name, function string) bool {
	rest, ok := strings.CutPrefix(name, function)
	return ok && (rest == "" || strings.HasPrefix(rest, ".func") || strings.HasPrefix(rest, ".gowrap"))
}

func withoutVendor(function string) string {
	if i := strings.LastIndex(function, "/vendor/"); i >= 0 {
		return function[i+len("/vendor/"):]
	}
	return strings.TrimPrefix(function, "vendor/")
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
