package stackmatchtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/stackmatchtest"
)

// myRule is a rule as a user would write it.
var myRule = stackmatch.Rule{
	ID: "MY-7", Title: "the queue's pushers are stuck", Severity: stackmatch.SeverityWarning,
	Categories: []string{"queue-stuck"}, Doc: "Push waits for a consumer that has gone.", Advice: "Select on the context beside the send.",
	Verdict: stackmatch.VerdictLeak,
	Match: stackmatch.Match{
		Leaf: stackmatch.Exact("example.com/app.(*Queue).push"), WaitReasons: []string{"chan send"}, MinCount: 3,
	},
}

const myFixture = `// The queue of example.com/app.
=== leak
goroutine 7 [chan send, 9 minutes]: // x12 // want MY-7 leak count=12 culprit=example.com/app.(*Queue).push
example.com/app.(*Queue).push(0xc000012345)
	/src/app/queue.go:17 +0x1d
created by example.com/app.(*Queue).start in goroutine 3
	/src/app/queue.go:11 +0x9f
=== clean
goroutine 7 [chan send]: // x2
example.com/app.(*Queue).push(0xc000012345)
	/src/app/queue.go:17 +0x1d
`

// rules makes a set of rules that are known to be good.
func rules(list ...stackmatch.Rule) *stackmatch.RuleSet {
	s, err := stackmatch.NewRuleSet(list...)
	if err != nil {
		panic(err)
	}
	return s
}

func ExampleCheck() {
	for _, p := range stackmatchtest.Check(myFixture, rules(myRule)) {
		fmt.Println(p)
	}
	broken := myRule
	broken.Match.MinCount = 100
	for _, p := range stackmatchtest.Check(myFixture, rules(broken)) {
		fmt.Println(p)
	}
	// Output:
	// line 3 (leak): no finding MY-7 leak count=12 culprit=example.com/app.(*Queue).push here; found: nothing
}

func TestRun(t *testing.T) {
	stackmatchtest.Run(t, "../testdata/rules", nil)
}

func TestCheckProblems(t *testing.T) {
	one := "goroutine 7 [chan send, 9 minutes]:%s\nexample.com/app.(*Queue).push(0x1)\n\t/src/app/queue.go:17 +0x1d\n"
	tests := []struct{ name, fixture, want string }{
		{"empty", "", "no scenario"},
		{"text before a scenario", fmt.Sprintf(one, ""), "before the first scenario"},
		{"no name", "=== \n", "has no name"},
		{"unknown setting", "=== a speed=3\n" + fmt.Sprintf(one, ""), "unknown setting"},
		{"bad objects", "=== a objects=x\n" + fmt.Sprintf(one, ""), "no number"},
		{"no dump", "=== a\n", "empty"},
		{"unexpected finding", "=== a\n" + fmt.Sprintf(one, " // x5"), "unexpected finding: MY-7"},
		{"missing finding", "=== a\n" + fmt.Sprintf(one, " // want MY-7"), "no finding MY-7 here; found: nothing"},
		{"wrong count", "=== a\n" + fmt.Sprintf(one, " // x5 // want MY-7 count=4"), "no finding MY-7 count=4"},
		{"wrong verdict", "=== a\n" + fmt.Sprintf(one, " // x5 // want MY-7 suspect"), "no finding MY-7 suspect"},
		{"wrong category", "=== a\n" + fmt.Sprintf(one, " // x5 // want MY-7 category=b"), "category=b"},
		{"wrong place", "=== a\n" + fmt.Sprintf(one, " // x5") + "\ngoroutine 9 [select]: // want MY-7\nmain.main()\n\t/src/main.go:3 +0x1\n", "no finding MY-7 here"},
		{"want without a rule", "=== a\n" + fmt.Sprintf(one, " // x5 // want count=5"), "no rule"},
		{"want with a typing mistake", "=== a\n" + fmt.Sprintf(one, " // x5 // want MY-7 leek"), `"leek"`},
		{"bad count", "=== a\n" + fmt.Sprintf(one, " // x5 // want MY-7 count=many"), `"many"`},
		{"bad repetition", "=== a\n" + fmt.Sprintf(one, " // x0"), "no repetition"},
		{"unknown remark", "=== a\n" + fmt.Sprintf(one, " // often"), "unknown remark"},
		{"want in an earlier dump", "=== a\n" + fmt.Sprintf(one, " // want MY-7") + "---\n" + fmt.Sprintf(one, ""), "not the scenario's last"},
		{"objects for too few dumps", "=== a objects=1,2\n" + fmt.Sprintf(one, ""), "one number for each dump"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var all []string
			for _, p := range stackmatchtest.Check(tt.fixture, rules(myRule)) {
				all = append(all, p.Error())
				if p.Line < 1 {
					t.Errorf("no line: %v", p)
				}
			}
			if !strings.Contains(strings.Join(all, "\n"), tt.want) {
				t.Errorf("got %q, want one with %q", all, tt.want)
			}
		})
	}
	if got := stackmatchtest.Check(myFixture, rules(myRule)); got != nil {
		t.Errorf("the good fixture: got %v, want nothing", got)
	}
}

func TestCheckCounts(t *testing.T) {
	const fixture = `=== leak
goroutine profile: total 12
12 @ 0x1 0x2 0x3 // want MY-8 count=12
#	0x2	example.com/app.(*Queue).push+0x1d	/src/app/queue.go:17
`
	rule := myRule
	rule.ID = "MY-8"
	if got := stackmatchtest.Check(fixture, rules(rule)); got != nil {
		t.Errorf("got %v, want nothing", got)
	}
}

func TestAnalyze(t *testing.T) {
	if got := stackmatchtest.Scenarios(myFixture); len(got) != 2 || got[0] != "leak" || got[1] != "clean" {
		t.Errorf("scenarios: got %q, want leak and clean", got)
	}
	a, err := stackmatchtest.Analyze(myFixture, "leak", rules(myRule))
	if err != nil || len(a.Findings) != 1 {
		t.Errorf("got %+v, %v, want one finding", a, err)
	}
	if _, err := stackmatchtest.Analyze(myFixture, "none", nil); err == nil {
		t.Error("unknown scenario: got no error")
	}
}
