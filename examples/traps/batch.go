package traps

import "slices"

// Conflict says why two traps cannot leak in one process and be told apart, or "" when they can. Twins never are in each
// other's way.
func (t *Trap) Conflict(other *Trap) string {
	for _, one := range []*Trap{t, other} {
		if one.Alone != "" {
			return one.Name + " " + one.Alone
		}
	}
	if t.Controller != LeakyController && t.Controller == other.Controller && t.Culprit != (Site{}) && t.Culprit == other.Culprit {
		return "nothing but the controller could tell the findings of " + t.Name + " and " + other.Name + " apart, and both name the same one"
	}
	return ""
}

// Batches splits traps into batches of at most so many, each for one process: traps of memory apart from the others, and
// none with one that it is in conflict with. The order within the batches is that of the list.
func Batches(list []Trap, size int) [][]Trap {
	var batches [][]Trap
	for i := range list {
		trap := &list[i]
		fits := func(batch []Trap) bool {
			return len(batch) < size && (batch[0].Grows == Heap) == (trap.Grows == Heap) &&
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
