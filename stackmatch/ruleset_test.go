package stackmatch_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// names are functions that random stacks and rules are made of: few, so that they meet.
var names = []string{
	"main.main", "main.run", "example.com/app.F", "example.com/app.(*T).M", "example.com/app/b.(*T).M", "example.com/app.v2/c.G",
	"net/http.(*persistConn).readLoop", "net/http.(*persistConn).writeLoop", "sync.(*Mutex).Lock", "runtime.gopark",
	"k8s.io/client-go/util/workqueue.(*Typed[...]).Get", "k8s.io/client-go/util/workqueue.(*Type).Get",
	"example.com/app/vendor/k8s.io/client-go/util/workqueue.(*Type).Get", "example.com/app.(*T).M.func1", "example.com.H",
}

func randomPattern(r *rand.Rand) stackmatch.Pattern {
	name := strings.ReplaceAll(names[r.IntN(len(names))], "[...]", "")
	switch r.IntN(6) {
	case 0, 1:
		return stackmatch.Exact(name)
	case 2:
		return stackmatch.Prefix(name[:1+r.IntN(len(name))])
	case 3:
		return stackmatch.Regexp("^" + strings.NewReplacer(".", `\.`, "(", `\(`, ")", `\)`, "*", `\*`).Replace(name) + "$")
	case 4:
		return stackmatch.Regexp(`^example\.com/app(/b)?\.\(\*T\)`)
	}
	return stackmatch.Regexp("[A-Z]")
}

func randomRule(r *rand.Rand, id int) stackmatch.Rule {
	rule := stackmatch.Rule{
		ID: fmt.Sprintf("R-%d", id), Title: "t", Severity: stackmatch.SeverityInfo, Categories: []string{"c"}, Doc: "d", Advice: "a",
		Verdict: stackmatch.VerdictSuspect,
	}
	for range r.IntN(3) {
		rule.Match.Frames = append(rule.Match.Frames, randomPattern(r))
	}
	if r.IntN(3) == 0 {
		rule.Match.Leaf = randomPattern(r)
	}
	if r.IntN(3) == 0 {
		rule.Match.CreatedBy = randomPattern(r)
	}
	if r.IntN(4) == 0 {
		rule.Match.Without = []stackmatch.Pattern{randomPattern(r)}
	}
	if r.IntN(3) == 0 {
		rule.Match.WaitReasons = []string{"select"}
	}
	if r.IntN(4) == 0 {
		rule.Match.Labels = map[string]string{"k": []string{"", "v"}[r.IntN(2)]}
	}
	rule.Match.MinCount = 1 + r.IntN(3)
	if len(rule.Match.Frames) == 0 && rule.Match.Leaf == (stackmatch.Pattern{}) {
		rule.Match.Frames = []stackmatch.Pattern{randomPattern(r)}
	}
	return rule
}

func randomGroup(r *rand.Rand) stackmatch.Group {
	g := stackmatch.Group{Count: 1 + r.IntN(4), WaitReason: []string{"", "select", "chan send"}[r.IntN(3)]}
	for range r.IntN(6) {
		g.Stack = append(g.Stack, frame.Frame{Function: names[r.IntN(len(names))], File: "f.go", Line: 1})
	}
	if r.IntN(2) == 0 {
		g.CreatedBy = frame.Frame{Function: names[r.IntN(len(names))]}
	}
	if r.IntN(2) == 0 {
		g.Labels = []stackmatch.Label{{Key: "k", Value: []string{"v", "w"}[r.IntN(2)]}}
	}
	return g
}

// TestMatchAgainstLinearScan compares the indexed set with the plain meaning of "first match wins": each rule alone, in
// order.
func TestMatchAgainstLinearScan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	matched := 0
	for round := range 60 {
		n := 1 + r.IntN(80)
		if round%20 == 19 {
			n = 1100 // more than the words on the stack
		}
		rules := make([]stackmatch.Rule, n)
		alone := make([]*stackmatch.RuleSet, n)
		for i := range rules {
			rules[i] = randomRule(r, i)
			alone[i] = newRuleSet(t, rules[i])
		}
		set := newRuleSet(t, rules...)
		for range 40 {
			g := randomGroup(r)
			want := ""
			for i := range alone {
				if _, ok := alone[i].Match(&g, nil); ok {
					want = rules[i].ID
					break
				}
			}
			got := ""
			if rule, ok := set.Match(&g, nil); ok {
				got = rule.ID
				matched++
			}
			if got != want {
				t.Fatalf("group %+v: got rule %q, want %q", g, got, want)
			}
		}
	}
	if matched < 500 {
		t.Errorf("only %d random groups matched: the test compares too little", matched)
	}
}

// TestMatchMeaning says what each condition means, independently of the index.
func TestMatchMeaning(t *testing.T) {
	stack := func(functions ...string) []frame.Frame {
		var out []frame.Frame
		for _, f := range functions {
			out = append(out, frame.Frame{Function: f})
		}
		return out
	}
	queue := "k8s.io/client-go/util/workqueue.(*Typed[...]).Get"
	tests := []struct {
		name  string
		match stackmatch.Match
		group stackmatch.Group
		want  bool
	}{
		{"frames in order with a gap", stackmatch.Match{Frames: []stackmatch.Pattern{stackmatch.Exact("a.F"), stackmatch.Exact("c.H")}}, stackmatch.Group{Count: 1, Stack: stack("a.F", "b.G", "c.H")}, true},
		{"frames in the other order", stackmatch.Match{Frames: []stackmatch.Pattern{stackmatch.Exact("c.H"), stackmatch.Exact("a.F")}}, stackmatch.Group{Count: 1, Stack: stack("a.F", "b.G", "c.H")}, false},
		{"one frame does not meet two patterns", stackmatch.Match{Frames: []stackmatch.Pattern{stackmatch.Exact("a.F"), stackmatch.Prefix("a.")}}, stackmatch.Group{Count: 1, Stack: stack("a.F")}, false},
		{"type arguments", stackmatch.Match{Frames: []stackmatch.Pattern{stackmatch.Exact("k8s.io/client-go/util/workqueue.(*Typed).Get")}}, stackmatch.Group{Count: 1, Stack: stack(queue)}, true},
		{"type arguments in the pattern", stackmatch.Match{Frames: []stackmatch.Pattern{stackmatch.Exact(queue)}}, stackmatch.Group{Count: 1, Stack: stack(queue)}, true},
		{"vendored", stackmatch.Match{Leaf: stackmatch.Prefix("k8s.io/client-go/util/")}, stackmatch.Group{Count: 1, Stack: stack("example.com/a/vendor/" + queue)}, true},
		{"leaf behind what waits", stackmatch.Match{Leaf: stackmatch.Exact("a.F")}, stackmatch.Group{Count: 1, Stack: stack("internal/sync.(*Mutex).Lock", "sync.(*Mutex).Lock", "a.F")}, true},
		{"leaf is not any frame", stackmatch.Match{Leaf: stackmatch.Exact("b.G")}, stackmatch.Group{Count: 1, Stack: stack("a.F", "b.G")}, false},
		{"no leaf", stackmatch.Match{Leaf: stackmatch.Regexp(".")}, stackmatch.Group{Count: 1, Stack: stack("runtime.gopark")}, false},
		{"without", stackmatch.Match{Leaf: stackmatch.Exact("a.F"), Without: []stackmatch.Pattern{stackmatch.Exact("b.G")}}, stackmatch.Group{Count: 1, Stack: stack("a.F", "b.G")}, false},
		{"unknown creator meets nothing", stackmatch.Match{CreatedBy: stackmatch.Regexp(".*")}, stackmatch.Group{Count: 1, Stack: stack("a.F")}, false},
		{"unknown creator, wanted", stackmatch.Match{CreatedBy: stackmatch.Exact("a.F")}, stackmatch.Group{Count: 1, Stack: stack("a.F")}, false},
		{"wait reason", stackmatch.Match{WaitReasons: []string{"select", "chan send"}}, stackmatch.Group{Count: 1, WaitReason: "chan send"}, true},
		{"unknown wait reason", stackmatch.Match{WaitReasons: []string{"select"}}, stackmatch.Group{Count: 1, Stack: stack("a.F")}, false},
		{"unknown wait reason beside a leaf", stackmatch.Match{WaitReasons: []string{"select"}, Leaf: stackmatch.Exact("a.F")}, stackmatch.Group{Count: 1, Stack: stack("a.F")}, true},
		{"unknown wait", stackmatch.Match{MinWait: 1}, stackmatch.Group{Count: 1}, false},
		{"any value of a label", stackmatch.Match{Labels: map[string]string{"k": ""}}, stackmatch.Group{Count: 1, Labels: []stackmatch.Label{{Key: "k", Value: "v"}}}, true},
		{"another value", stackmatch.Match{Labels: map[string]string{"k": "w"}}, stackmatch.Group{Count: 1, Labels: []stackmatch.Label{{Key: "k", Value: "v"}}}, false},
		{"too few", stackmatch.Match{WaitReasons: []string{"select"}, MinCount: 2}, stackmatch.Group{Count: 1, WaitReason: "select"}, false},
		{"too many", stackmatch.Match{WaitReasons: []string{"select"}, MaxCount: 2}, stackmatch.Group{Count: 3, WaitReason: "select"}, false},
		{"predicate without a context", stackmatch.Match{Predicate: "user-code"}, stackmatch.Group{Count: 1, Stack: stack("example.com/a.F")}, false},
		{"condition in code", stackmatch.Match{When: func(g *stackmatch.Group, _ *stackmatch.Context) bool { return g.Count == 5 }}, stackmatch.Group{Count: 5}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rule := stackmatch.Rule{
				ID: "T", Title: "t", Severity: stackmatch.SeverityInfo, Categories: []string{"c"}, Doc: "d", Advice: "a",
				Verdict: stackmatch.VerdictLeak, Match: tt.match,
			}
			if _, got := newRuleSet(t, rule).Match(&tt.group, nil); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRuleSetIsImmutable(t *testing.T) {
	rule := stackmatch.Builtin()[0]
	set := newRuleSet(t, rule)
	rule.Categories[0] = "changed"
	set.Rules()[0].Categories[0] = "changed"
	if got, _ := set.Rule(rule.ID); got.Categories[0] == "changed" {
		t.Error("a change outside reached the set")
	}
	var none *stackmatch.RuleSet
	if _, ok := none.Match(&stackmatch.Group{}, nil); ok || none.Len() != 0 || none.Rules() != nil {
		t.Error("the nil set is not empty")
	}
}

func newRuleSet(tb testing.TB, rules ...stackmatch.Rule) *stackmatch.RuleSet {
	tb.Helper()
	s, err := stackmatch.NewRuleSet(rules...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// manyRules gives n rules about functions that no stack has.
func manyRules(n int) []stackmatch.Rule {
	out := make([]stackmatch.Rule, n)
	for i := range out {
		out[i] = stackmatch.Rule{
			ID: fmt.Sprintf("N-%d", i), Title: "t", Severity: stackmatch.SeverityInfo, Categories: []string{"c"}, Doc: "d", Advice: "a",
			Verdict: stackmatch.VerdictSuspect,
			Match:   stackmatch.Match{Frames: []stackmatch.Pattern{stackmatch.Exact(fmt.Sprintf("example.com/lib%d.(*T).Run", i))}},
		}
	}
	return out
}

// BenchmarkMatch shows that a set of 500 rules costs what one of 10 does, on the groups of a whole dump.
func BenchmarkMatch(b *testing.B) {
	d, err := stackmatch.ReadFile("testdata/corpus/C10-promop-poll-watcher.debug2.txt.gz", stackmatch.ReadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	groups := d.GroupBy("")
	for _, n := range []int{10, 100, 500} {
		set := newRuleSet(b, manyRules(n)...)
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range groups {
					set.Match(&groups[i], nil)
				}
			}
		})
	}
	set := newRuleSet(b, stackmatch.Builtin()...)
	b.Run("builtin", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			in := stackmatch.NewContext(groups, stackmatch.ContextOptions{})
			for i := range groups {
				set.Match(&groups[i], in)
			}
		}
	})
}
