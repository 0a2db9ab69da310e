package stackmatch

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// controllerLabel is the goroutine label under which package leakguard puts the controller's name.
const controllerLabel = "leakguard_controller"

// judgement is a verdict with its count and its reasons.
type judgement struct {
	verdict Verdict
	count   int
	reasons []string
	// category replaces the rule's when what looked like it is benign.
	category string
}

func (j *judgement) because(format string, args ...any) {
	j.reasons = append(j.reasons, fmt.Sprintf(format, args...))
}

// finding turns a match into a finding.
func (a *analyzer) finding(m *match) Finding {
	lead := m.leaders[0]
	j := a.judge(m)
	f := Finding{
		Schema: FindingSchema, Rule: m.rule.rule.ID, Category: m.rule.rule.category(), Verdict: j.verdict, Severity: m.rule.rule.Severity,
		Count: int64(j.count), WaitReason: lead.WaitReason, Culprit: displayFrame(m.culprit),
		Advice: m.rule.rule.Advice, Trap: m.rule.rule.Trap,
	}
	if j.verdict == VerdictBenign {
		f.Severity = SeverityInfo
	}
	if j.verdict == VerdictLeak {
		f.PerHour = a.perHour(m)
	}
	if j.category != "" {
		f.Category, f.Advice = j.category, "Nothing to do."
	}
	f.Controller, _ = lead.Label(controllerLabel)
	f.Fingerprint = fingerprint(f.Category, f.Culprit.Function, f.Controller)
	if !m.visible && j.verdict != VerdictBenign {
		j.because("the code to fix is in no stack: the culprit is the pattern's name, look for what calls it")
	}
	f.Reason = m.rule.rule.Title + ": " + strings.Join(j.reasons, "; ")
	for _, p := range m.parts[:min(len(m.parts), maxStacks)] {
		f.Stacks = append(f.Stacks, p.group.Stack)
	}
	if len(a.options.Times) > 0 {
		f.LastSeen = a.options.Times[len(a.options.Times)-1]
		f.FirstSeen = a.options.Times[a.firstWith(m)]
	}
	return f
}

// displayFrame removes the place where a module is vendored from a culprit's name.
func displayFrame(f frame.Frame) frame.Frame {
	if strings.Contains(f.Function, "[") {
		f.Function = unvendored(f.Function)
	} else {
		f.Function = plainName(f.Function)
	}
	return f
}

// judge weighs a match against the earlier dumps and the number of objects.
func (a *analyzer) judge(m *match) judgement {
	r := m.rule.rule
	j := judgement{verdict: r.VerdictFor(m.units(), false), count: max(m.total()-a.byDesign(m), 0)}
	a.describe(m, &j)
	counts := a.history(m)
	if len(counts) > 1 {
		a.judgeHistory(m, &j, counts)
	}
	if len(a.options.Objects) > 0 && countsObjects(r) {
		a.judgeObjects(&j, counts)
	}
	return j
}

// describe says what there is.
func (a *analyzer) describe(m *match, j *judgement) {
	lead := m.leaders[0]
	j.because("%s of %d groups", goroutines(m.total()), len(m.parts))
	if len(m.parts) == 1 {
		j.reasons[0] = goroutines(m.total())
	}
	var oldest time.Duration
	leaked := 0
	for _, p := range m.parts {
		oldest = max(oldest, p.group.Oldest)
		leaked += p.group.Leaked
	}
	if oldest > 0 {
		j.because("the oldest has waited %d minutes", int(oldest/time.Minute))
	}
	if leaked > 0 {
		j.because("the runtime's leak profile has proved %d of them", leaked)
	}
	if cl := a.context.locks.of[lead]; cl != nil && isLockRule(m.rule.rule) {
		a.describeLock(cl, j)
	}
	if a.context.census.sinkThrottled > 0 && strings.Contains(m.rule.rule.category(), "event") {
		j.because("the sink waits in the client-side rate limiter")
	}
}

// describeLock names the holder and its victims.
func (a *analyzer) describeLock(cl *cluster, j *judgement) {
	if cl.holder == nil {
		j.because("no goroutine is seen to hold the lock")
		return
	}
	victims := -cl.holder.Count
	for _, g := range cl.members {
		victims += g.Count
	}
	j.because("%s holds what %s want", cl.culprit.Function, goroutines(victims))
}

func goroutines(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}

// byDesign is how many goroutines of a match are there in any healthy process.
func (a *analyzer) byDesign(m *match) int {
	if strings.HasPrefix(m.rule.rule.Match.Predicate, "listeners-") {
		return a.context.census.reflectors * len(m.parts)
	}
	return 0
}

// countsObjects reports whether a rule is about goroutines of which there may be one for each object.
func countsObjects(r *Rule) bool {
	return r.Growing != "" || r.Enough > 0 || r.Verdict == VerdictSuspect
}

// history is how many goroutines with the shapes of a match each dump has.
func (a *analyzer) history(m *match) []int {
	out := make([]int, len(a.shapes))
	for i, before := range a.context.earlier {
		for _, p := range m.parts {
			out[i] += before[shapeKey(p.group)]
		}
	}
	for _, p := range m.parts {
		out[len(out)-1] += p.group.Count // not its share: the earlier dumps have no shares either
	}
	return out
}

// judgeHistory lets the earlier dumps speak.
func (a *analyzer) judgeHistory(m *match, j *judgement, counts []int) {
	r := m.rule.rule
	grown := grownCounts(counts) && a.context.started.covers(counts[len(counts)-1]-counts[0], m.groups()...)
	switch {
	case grown:
		a.judgeGrown(m, j, counts)
	case r.undecided(m.units()):
		j.verdict, j.category = VerdictBenign, "benign-steady"
		turned := a.turnover(m)
		if turned != "" {
			j.category = "benign-per-object"
		}
		j.because("did not grow between the dumps (%s)%s", steps(counts), turned)
	default:
		j.because("counts in the dumps: %s", steps(counts))
	}
}

// judgeGrown judges a match that has grown. What was there at first counts when the first dump alone was already
// suspect and the rule is about a pattern of a library, of which none is meant to be there.
func (a *analyzer) judgeGrown(m *match, j *judgement, counts []int) {
	r := m.rule.rule
	switch {
	case plateau(counts) && r.undecided(m.units()):
		j.because("grew %s and then stood still, which a pool does too", steps(counts))
	case r.Match.Predicate == "doubled-user-code" && a.comeAndGo(m):
		j.verdict = VerdictSuspect
		j.because("grew %s, but most goroutines of the first dump are gone: they come and go", steps(counts))
	default:
		j.verdict = r.VerdictFor(m.units(), true)
		j.because("grew %s", steps(counts))
	}
	if r.Blame == "" || !a.saidBefore(m) {
		j.count = counts[len(counts)-1] - counts[0]
	}
}

// saidBefore reports whether a rule of the same category that is not benign had already matched in the first dump
// alone: then what was there at first is not there by design.
func (a *analyzer) saidBefore(m *match) bool {
	for _, lead := range m.leaders {
		for _, g := range a.byShape[0][shapeKey(lead)] {
			c := a.options.Rules.match(g, a.before)
			if c != nil && c.rule.Verdict.Worse(VerdictBenign) && c.rule.category() == m.rule.rule.category() {
				return true
			}
		}
	}
	return false
}

// turnover says whether other goroutines stand in the place of a tenth of the old ones or more, when ids tell.
func (a *analyzer) turnover(m *match) string {
	before, now := a.ids(m, 0), a.ids(m, len(a.dumps)-1)
	same := common(before, now)
	if len(before) == 0 || (len(now)-same)*10 < len(now) {
		return ""
	}
	return fmt.Sprintf(", and %d of %d are not those of the first dump", len(now)-same, len(now))
}

// comeAndGo reports whether most goroutines of the first dump are gone while others of unknown age have come, when ids
// tell: a burst.
func (a *analyzer) comeAndGo(m *match) bool {
	const enough = 3
	if m.leaders[0].Oldest > 0 {
		return false
	}
	before := a.ids(m, 0)
	return len(before) >= enough && common(before, a.ids(m, len(a.dumps)-1))*2 < len(before)
}

// ids are the ids of the goroutines of a dump with the shapes of a match.
func (a *analyzer) ids(m *match, at int) map[uint64]bool {
	out := make(map[uint64]bool)
	for _, lead := range m.leaders {
		for _, g := range a.byShape[at][shapeKey(lead)] {
			for _, member := range g.Members {
				if member < len(a.dumps[at].Goroutines) {
					out[a.dumps[at].Goroutines[member].ID] = true
				}
			}
		}
	}
	return out
}

// common counts the ids that both have.
func common(a, b map[uint64]bool) int {
	n := 0
	for id := range b {
		if a[id] {
			n++
		}
	}
	return n
}

// judgeObjects compares with the number of live objects.
func (a *analyzer) judgeObjects(j *judgement, counts []int) {
	objects := a.options.Objects
	last := len(objects) - 1
	perObject := 1.0
	if last > 0 && objects[0] > 0 && counts[0] > 0 {
		perObject = max(1, float64(int(float64(counts[0])/float64(objects[0])+0.5)))
	} else if last == 0 && objects[0] > 0 {
		perObject = max(1, float64(int(float64(counts[0])/float64(objects[0])+0.1)))
		if perObject > 1 && counts[0]%objects[0] != 0 {
			perObject = 1
		}
	}
	expected := perObject * float64(objects[last])
	now := float64(counts[last])
	switch {
	case now <= expected*1.1+2:
		j.verdict, j.category = VerdictBenign, "benign-per-object"
		j.because("follows the number of objects: %d for %d", counts[last], objects[last])
	case now > expected*1.5:
		j.verdict = VerdictLeak
		j.count = int(now - expected)
		j.because("%d for %d live objects, %d more than %v each", counts[last], objects[last], j.count, perObject)
	}
}

// steps writes counts as "66 → 412".
func steps(counts []int) string {
	parts := make([]string, len(counts))
	for i, n := range counts {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, " → ")
}

// firstWith is the first dump that has the match's leading shape.
func (a *analyzer) firstWith(m *match) int {
	key := shapeKey(m.leaders[0])
	for i, before := range a.context.earlier {
		if before[key] > 0 {
			return i
		}
	}
	return len(a.shapes) - 1
}

// perHour is the growth between the first and the last dump in an hour; with one dump, or without times, it is
// estimated when the waits are spread from the oldest on, as those of a steady leak are.
func (a *analyzer) perHour(m *match) float64 {
	counts := a.history(m)
	if t := a.options.Times; len(t) > 1 {
		if hours := t[len(t)-1].Sub(t[0]).Hours(); hours > 0 {
			return max(0, float64(counts[len(counts)-1]-counts[0])/hours)
		}
	}
	lead := m.leaders[0]
	if lead.Oldest < minutes(10) || lead.Median*10 > lead.Oldest*8 || lead.Median*10 < lead.Oldest*2 {
		return 0
	}
	return float64(m.total()) / lead.Oldest.Hours()
}
