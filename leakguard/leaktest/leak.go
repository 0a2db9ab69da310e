package leaktest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Leak is a goroutine that is left.
type Leak struct {
	// ID is the runtime's number of the goroutine.
	ID uint64
	// Test is the test that started it, as far as that is known; empty otherwise.
	Test string
	// WaitReason is what it waits for, in the runtime's words.
	WaitReason string
	// Wait is how long it has been blocked, in whole minutes; 0 means less than one.
	Wait time.Duration
	// Stack is its calls, leaf first.
	Stack []frame.Frame
	// CreatedBy is the function and line of its go statement.
	CreatedBy frame.Frame
	// CreatorID is the goroutine that started it.
	CreatorID uint64
	// Site is the frame to look at first: the first of the main module, else the creator's, else the function it was started for.
	Site frame.Frame
	// Proven tells that the runtime has proved that it can never run again.
	Proven bool
	// Note says more, such as that a suppression has expired; may be empty.
	Note string
}

func (k *checker) leak(g *stackmatch.Goroutine, group *stackmatch.Group) Leak {
	l := Leak{
		ID: g.ID, WaitReason: g.WaitReason, Wait: g.Wait, Stack: g.Stack, CreatedBy: g.CreatedBy, CreatorID: g.CreatorID,
		Site: group.Culprit, Proven: g.Leaked,
	}
	if l.Site.IsZero() {
		l.Site = group.Root
	}
	if s, ok := scopeOf(g.Labels); ok {
		l.Test = s.name
	}
	for _, s := range k.config.ignores {
		if s.expired && s.matches(group) {
			l.Note = fmt.Sprintf("its suppression (%s) expired on %s", s.Reason, s.Until.Format(time.DateOnly))
		}
	}
	return l
}

// sameLeak tells leaks that one line of a report covers.
type sameLeak struct {
	test, note, reason, stack string
	creator                   frame.Frame
	proven                    bool
}

func (l *Leak) key() sameLeak {
	var b strings.Builder
	for _, f := range l.Stack {
		b.WriteString(f.Function)
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(f.Line))
		b.WriteByte('\n')
	}
	return sameLeak{test: l.Test, note: l.Note, reason: l.WaitReason, stack: b.String(), creator: l.CreatedBy, proven: l.Proven}
}

// maxListed bounds the different leaks that a report spells out, maxShown the frames of each.
const (
	maxListed = 20
	maxShown  = 40
)

// describe writes the leaks for a person, equal ones together, the most numerous first.
func describe(leaks []Leak, asked bool) string {
	counts := map[sameLeak]int{}
	var distinct []*Leak
	for i := range leaks {
		key := leaks[i].key()
		if counts[key]++; counts[key] == 1 {
			distinct = append(distinct, &leaks[i])
		}
	}
	slices.SortStableFunc(distinct, func(a, b *Leak) int { return cmp.Compare(counts[b.key()], counts[a.key()]) })
	var b strings.Builder
	for i, l := range distinct {
		if i == maxListed {
			fmt.Fprintf(&b, "\n… and %d more different ones", len(distinct)-i)
			break
		}
		l.describe(&b, counts[l.key()], asked)
	}
	return b.String()
}

func (l *Leak) describe(b *strings.Builder, n int, asked bool) {
	wait := "less than a minute"
	if l.Wait > 0 {
		wait = fmt.Sprintf("%d min", int(l.Wait.Minutes()))
	}
	fmt.Fprintf(b, "\n%d × goroutine [%s, for %s]", n, l.WaitReason, wait)
	if !l.CreatedBy.IsZero() {
		fmt.Fprintf(b, "\n    started by the go statement at %s in %s", l.CreatedBy.Position(), l.CreatedBy.Function)
	}
	fmt.Fprintf(b, "\n    look at %s", l.Site)
	switch {
	case l.Proven:
		b.WriteString("\n    the runtime's leak profile proves that it can never run again")
	case asked:
		b.WriteString("\n    the runtime's leak profile has no proof: something alive could still wake it")
	}
	if rule, ok := l.rule(); ok {
		fmt.Fprintf(b, "\n    %s: %s. %s", rule.ID, rule.Title, rule.Advice)
	}
	if l.Note != "" {
		b.WriteString("\n    " + l.Note)
	}
	for i, f := range l.Stack {
		if i == maxShown {
			fmt.Fprintf(b, "\n        … %d more frames", len(l.Stack)-i)
			break
		}
		fmt.Fprintf(b, "\n        %s\n            %s:%d", f.Function, f.File, f.Line)
	}
	if !l.CreatedBy.IsZero() {
		in := ""
		if l.CreatorID != 0 {
			in = fmt.Sprintf(" in goroutine %d", l.CreatorID)
		}
		fmt.Fprintf(b, "\n        created by %s%s\n            %s:%d", l.CreatedBy.Function, in, l.CreatedBy.File, l.CreatedBy.Line)
	}
	b.WriteByte('\n')
}

// rule gives stackmatch's built-in rule for a leak, when one knows its stack.
func (l *Leak) rule() (stackmatch.Rule, bool) {
	rules, err := builtinRules()
	if err != nil {
		return stackmatch.Rule{}, false
	}
	group := groupOf(&stackmatch.Goroutine{Stack: l.Stack, CreatedBy: l.CreatedBy, WaitReason: l.WaitReason, Wait: l.Wait})
	r, ok := rules.Match(&group, stackmatch.NewContext([]stackmatch.Group{group}, stackmatch.ContextOptions{}))
	if !ok || r.Verdict == stackmatch.VerdictBenign {
		return stackmatch.Rule{}, false
	}
	return *r, true
}

// accounts remembers goroutines, by id and by group of the profile.
type accounts struct {
	mu     sync.Mutex
	ids    map[uint64]bool
	groups map[uint64]int
}

// elders are the groups of goroutines that a dump has shown to descend from no test that was about to begin. The next tests
// need no dump for them in a process with many goroutines, as long as they are not more.
var elders accounts

// maxReported bounds the accounts; what does not fit is reported twice.
const maxReported = 1 << 16

// reported are the leaks of this process that a check has reported, so that a parent test neither waits for nor reports its
// subtest's again.
var reported accounts

// add notes leaks, and the groups of the profile that they are in now.
func (a *accounts) add(leaks []Leak, owner scope) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ids == nil {
		a.ids, a.groups = map[uint64]bool{}, map[uint64]int{}
	}
	for i := range leaks {
		if len(a.ids) < maxReported {
			a.ids[leaks[i].ID] = true
		}
	}
	return profileGroups(func(groups []stackmatch.Group) {
		for i := range groups {
			g := &groups[i]
			if s, ok := scopeOf(g.Labels); ok && owner.owns(s) && len(a.groups) < maxReported {
				a.groups[g.ID] = g.Count
			}
		}
	})
}

// note remembers how many goroutines groups have.
func (a *accounts) note(groups map[uint64]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.groups == nil || len(a.groups) > maxReported {
		a.groups = map[uint64]int{}
	}
	maps.Copy(a.groups, groups)
}

// shrink forgets those that have ended since, and gives the number of all goroutines.
func (a *accounts) shrink(groups []stackmatch.Group) (total int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	still := make(map[uint64]int, len(a.groups))
	for i := range groups {
		g := &groups[i]
		total += g.Count
		if n := min(g.Count, a.groups[g.ID]); n > 0 {
			still[g.ID] = n
		}
	}
	a.groups = still
	return total
}

func (a *accounts) has(id uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ids[id]
}

// count is how many goroutines of a group of the profile have been reported.
func (a *accounts) count(group uint64) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.groups[group]
}
