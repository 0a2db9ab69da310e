package traps

import (
	"cmp"
	"slices"
	"strings"
)

// Conflict says why two traps cannot leak in one process and be told apart, or "" when they can. Twins never are in each
// other's way.
func (t *Trap) Conflict(other *Trap) string {
	for _, one := range []*Trap{t, other} {
		if one.Alone != "" {
			return one.Name + " " + one.Alone
		}
	}
	if t.ByType && other.ByType && t.Culprit == other.Culprit {
		return t.Name + " and " + other.Name + " have one culprit, and reconcilers of one type"
	}
	if t.Controller != LeakyController && t.Controller == other.Controller && t.Culprit != (Site{}) && t.Culprit == other.Culprit {
		return "nothing but the controller could tell the findings of " + t.Name + " and " + other.Name + " apart, and both name the same one"
	}
	return ""
}

// heapTogether is how many leaks of memory may share a process: leakguard names the few sites that carry most of the
// growth, and not those that carry a small part of it.
const heapTogether = 2

// class is what traps of a batch have in common. What only its growth tells is apart from what leaves the most goroutines
// behind, since leakguard decides about it with one dump of all goroutines, whose pause must stay within its budget.
func (t *Trap) class() string {
	switch {
	case t.Grows == Heap:
		return "heap"
	case slices.Contains(t.Rules, "growth"):
		return "growth"
	}
	return "rest"
}

// order is larger for what comes first.
func (t *Trap) order() int {
	if t.Grows == Heap {
		return 1
	}
	return 0
}

// Batches splits traps into batches of at most so many, whose leaks one process can have: none is in conflict with
// another, leaks of memory are apart from the others and in twos, and what only its growth tells is apart as well. Those of
// memory come first, since they take the longest to find; else the order is that of the list, which stays as it is.
func Batches(list []Trap, size int) [][]Trap {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Trap) int { return cmp.Compare(b.order(), a.order()) })
	var batches [][]Trap
	for i := range list {
		trap := &list[i]
		room := size
		if trap.Grows == Heap {
			room = min(size, heapTogether)
		}
		fits := func(batch []Trap) bool {
			return len(batch) < room && batch[0].class() == trap.class() &&
				!slices.ContainsFunc(batch, func(other Trap) bool { return trap.Conflict(&other) != "" })
		}
		if at := slices.IndexFunc(batches, fits); at >= 0 {
			batches[at] = append(batches[at], *trap)
		} else {
			batches = append(batches, []Trap{*trap})
		}
	}
	return batches
}

// Runs gives what --leak of the example operator takes to run the traps that are chosen and of which leakguard says what it
// should, once for each process: those of [Batches] for their leaks, and twice as many at once for their twins.
func Runs(twins bool, size int, chosen func(*Trap) bool) []string {
	list := slices.DeleteFunc(All(), func(t Trap) bool { return t.Gap != "" || !chosen(&t) })
	batches := slices.Collect(slices.Chunk(list, 2*size))
	if !twins {
		batches = Batches(list, size)
	}
	runs := make([]string, 0, len(batches))
	for _, batch := range batches {
		names := make([]string, 0, len(batch))
		for i := range batch {
			names = append(names, batch[i].Name)
		}
		runs = append(runs, strings.Join(names, ","))
	}
	return runs
}
