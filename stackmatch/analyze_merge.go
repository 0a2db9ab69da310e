package stackmatch

import "slices"

// mergeShapes joins groups that differ in lines, labels or spelling only: the same functions, creator and wait reason.
// For the question what is wrong, two lines of one loop are one thing. Labels that all have in common stay.
func mergeShapes(groups []Group) []Group {
	index := make(map[string]int, len(groups))
	out := make([]Group, 0, len(groups))
	for i := range groups {
		g := &groups[i]
		key := shapeKey(g) + plainName(g.CreatedBy.Function) + "\n" + g.WaitReason
		at, ok := index[key]
		if !ok {
			index[key] = len(out)
			out = append(out, *g)
			continue
		}
		out[at].join(g)
	}
	return out
}

// join adds the goroutines of another group of the same shape.
func (g *Group) join(other *Group) {
	if other.Count > g.Count {
		g.Median = other.Median // of the larger part
	}
	g.Count += other.Count
	g.Oldest = max(g.Oldest, other.Oldest)
	g.Leaked += other.Leaked
	g.Members = append(slices.Clip(g.Members), other.Members...)
	g.Labels = slices.DeleteFunc(slices.Clone(g.Labels), func(l Label) bool { return !slices.Contains(other.Labels, l) })
}
