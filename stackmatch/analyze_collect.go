package stackmatch

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// analyzer holds what one analysis knows.
type analyzer struct {
	options Options
	dumps   []*Dump
	shapes  [][]Group // merged groups of each dump, the last one's last
	context *Context
	before  *Context              // of the first dump alone, for what the rules say of it by itself; nil when there is one dump
	byShape []map[string][]*Group // the merged groups of each dump by their functions
}

// match is what a rule found: its leading groups and their companions with the share that belongs to them.
type match struct {
	rule    *compiledRule
	place   int // of the rule in its set
	leaders []*Group
	parts   []part
	culprit frame.Frame
	visible bool // the culprit is a frame of user code
}

// part is a group that belongs to a match, with how many of its goroutines do.
type part struct {
	group *Group
	count int
}

// groups are the groups of a match.
func (m *match) groups() []*Group {
	out := make([]*Group, 0, len(m.parts))
	for _, p := range m.parts {
		out = append(out, p.group)
	}
	return out
}

func newAnalyzer(dumps []*Dump, o Options) *analyzer {
	a := &analyzer{options: o, dumps: dumps}
	for _, d := range dumps {
		a.shapes = append(a.shapes, mergeShapes(d.GroupBy(o.Main)))
	}
	last := len(dumps) - 1
	a.context = NewContext(a.shapes[last], ContextOptions{
		Main: o.Main, Goroutines: dumps[last].Goroutines, Earlier: a.shapes[:last], Times: o.Times,
	})
	if last == 0 {
		return a
	}
	a.before = NewContext(a.shapes[0], ContextOptions{Main: o.Main, Goroutines: dumps[0].Goroutines})
	for _, groups := range a.shapes {
		index := make(map[string][]*Group, len(groups))
		for i := range groups {
			key := shapeKey(&groups[i])
			index[key] = append(index[key], &groups[i])
		}
		a.byShape = append(a.byShape, index)
	}
	return a
}

// groups are the merged groups of the last dump.
func (a *analyzer) groups() []Group { return a.shapes[len(a.shapes)-1] }

// findings applies the rules to the last dump and judges what they found against the earlier ones.
func (a *analyzer) findings() []Finding {
	matches := collect(a.options.Rules, a.groups(), a.context)
	out := make([]Finding, 0, len(matches))
	for i := range matches {
		out = append(out, a.finding(&matches[i]))
	}
	sortFindings(out)
	return out
}

// collect applies the rules to all groups and joins what belongs to one cause.
func collect(rules *RuleSet, groups []Group, in *Context) []match {
	matches := leaders(rules, groups, in)
	claimed := make(map[*Group]bool)
	leads := make(map[*Group]int) // the place of the rule that a group leads
	for i := range matches {
		for _, g := range matches[i].leaders {
			leads[g] = matches[i].place
		}
	}
	out := matches[:0]
	for _, m := range matches {
		m.leaders = slices.DeleteFunc(m.leaders, func(g *Group) bool { return claimed[g] })
		if len(m.leaders) == 0 {
			continue
		}
		m.claim(rules, groups, claimed, leads)
		out = append(out, m)
	}
	return out
}

// leaders gives a match for each rule and cause that has groups, in the order of the rules.
func leaders(rules *RuleSet, groups []Group, in *Context) []match {
	type key struct {
		place int
		cause string
	}
	index := make(map[key]int)
	var out []match
	for i := range groups {
		g := &groups[i]
		c := rules.match(g, in)
		if c == nil {
			continue
		}
		m := match{rule: c, place: rules.byID[c.rule.ID], leaders: []*Group{g}}
		m.culprit, m.visible = in.blame(g, c.rule)
		k := key{m.place, in.cause(g, c.rule, m.culprit)}
		if at, ok := index[k]; ok {
			out[at].leaders = append(out[at].leaders, g)
			continue
		}
		index[k] = len(out)
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b match) int { return cmp.Compare(a.place, b.place) })
	for i := range out {
		out[i].settle(in)
	}
	return out
}

// settle puts the largest leader first and takes the culprit from it.
func (m *match) settle(in *Context) {
	slices.SortStableFunc(m.leaders, func(a, b *Group) int { return cmp.Compare(b.Count, a.Count) })
	m.culprit, m.visible = in.blame(m.leaders[0], m.rule.rule)
}

// claim counts the match's goroutines: all of its leaders, and of its companions a whole multiple of that number, so
// that healthy goroutines with the same stack are left out.
func (m *match) claim(rules *RuleSet, groups []Group, claimed map[*Group]bool, leads map[*Group]int) {
	units := 0
	for _, g := range m.leaders {
		units += g.Count
		m.parts = append(m.parts, part{g, g.Count})
		claimed[g] = true
	}
	if len(m.rule.companions) == 0 {
		return
	}
	var names []*name
	for i := range groups {
		g := &groups[i]
		if place, leading := leads[g]; claimed[g] || leading && place < m.place {
			continue
		}
		names = rules.appendInfo(names[:0], g.Stack)
		if !anyMatches(m.rule.companions, names) {
			continue
		}
		if share := g.Count / units * units; share > 0 {
			m.parts = append(m.parts, part{g, share})
			claimed[g] = true
		}
	}
}

// units is how many leading goroutines the match has.
func (m *match) units() int {
	n := 0
	for _, g := range m.leaders {
		n += g.Count
	}
	return n
}

// total is how many goroutines the match has.
func (m *match) total() int {
	n := 0
	for _, p := range m.parts {
		n += p.count
	}
	return n
}

// cause says which groups that one rule matches belong together: those of one lock, of one pile, of one outer function,
// or else with one culprit.
func (c *Context) cause(g *Group, r *Rule, culprit frame.Frame) string {
	if cl := c.locks.of[g]; cl != nil && isLockRule(r) {
		return "lock " + cl.culprit.Function
	}
	switch r.Match.Predicate {
	case "behind-blocked-ticket":
		return "pile " + shapeKey(c.piles[g].root)
	case "stuck-sibling":
		root, _ := userRoot(g, c.main)
		return "root " + root
	}
	return culprit.Function
}

// isLockRule reports whether a rule asks what a lock's waiters wait for.
func isLockRule(r *Rule) bool {
	return slices.ContainsFunc(lockPredicates(), func(p Predicate) bool { return p.Name == r.Match.Predicate })
}

// blame gives the frame to name for a group that a rule matched. visible is false when the code to fix is in no frame:
// then it is the pattern's own name.
func (c *Context) blame(g *Group, r *Rule) (f frame.Frame, visible bool) {
	if cl := c.locks.of[g]; cl != nil && isLockRule(r) {
		return cl.culprit, true
	}
	switch r.Match.Predicate {
	case "behind-blocked-ticket":
		return pileCulprit(c.piles[g].root), true
	case "copies-of-one-controller":
		if starter, ok := c.firstStarter(g); ok {
			return starter, true
		}
	}
	f, origin, ok := c.culpritOf(g)
	if old := g.CreatedBy; strings.Contains(f.Function, ".func·") && old.Function != "" {
		f = old // before Go 1.5 a closure's name did not say what it is in
	}
	if ok && origin == frame.Main {
		return f, true
	}
	if r.Blame != "" {
		return patternFrame(g, r.Blame), false
	}
	if ok {
		return f, true
	}
	return likelyFrame(g), false
}

// likelyFrame names a group without user code: the first frame of a Kubernetes library, else what it was started for.
func likelyFrame(g *Group) frame.Frame {
	for _, f := range g.Stack {
		if frame.OriginOf(plainName(f.Function), "") >= frame.Kubernetes {
			return f
		}
	}
	if root := frame.Root(g.Stack); !root.IsZero() {
		return root
	}
	return g.CreatedBy
}

// patternFrame gives a pattern's name the place that the group's stack shows for it, if it does.
func patternFrame(g *Group, function string) frame.Frame {
	for _, f := range append(slices.Clip(g.Stack), g.CreatedBy) {
		if plainName(f.Function) == function {
			f.Function = function
			return f
		}
	}
	return frame.Frame{Function: function}
}

// pileCulprit names who started the goroutine that all others wait for, else where it waits.
func pileCulprit(root *Group) frame.Frame {
	if name := root.CreatedBy.Function; name != "" && !frame.IsSpawner(name) {
		f := root.CreatedBy
		f.Function = plainName(name)
		return f
	}
	i := max(leafIndex(appendNames(nil, root.Stack)), 0)
	return root.Stack[i]
}

// firstStarter follows the creators of a group through user code to the first that the dump shows: for workers and
// informers it is the constructor that is called again and again.
func (c *Context) firstStarter(g *Group) (frame.Frame, bool) {
	const deepest = 5
	var found frame.Frame
	for range deepest {
		creator := g.CreatedBy
		creator.Function = plainName(creator.Function)
		if frame.OriginOf(creator.Function, c.main) < frame.Library || creator.Function == found.Function {
			break
		}
		found = creator
		parent := c.running(creator.Function)
		if parent == nil {
			break
		}
		g = parent
	}
	return found, !found.IsZero()
}

// running finds a group that runs a function.
func (c *Context) running(function string) *Group {
	for i := range c.groups {
		for _, f := range c.groups[i].Stack {
			if plainName(f.Function) == function {
				return &c.groups[i]
			}
		}
	}
	return nil
}
