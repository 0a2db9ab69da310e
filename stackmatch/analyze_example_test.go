package stackmatch_test

import (
	"fmt"
	"strings"

	"github.com/leakguard/leakguard/stackmatch"
)

const stuckDump = `goroutine 12 [chan send, 9 minutes]:
example.com/app/queue.(*Queue).push(0xc000012345)
	/workspace/queue/queue.go:17 +0x1d
created by example.com/app/queue.(*Queue).start in goroutine 1
	/workspace/queue/queue.go:11 +0x9f

goroutine 13 [chan send, 8 minutes]:
example.com/app/queue.(*Queue).push(0xc000012346)
	/workspace/queue/queue.go:17 +0x1d
created by example.com/app/queue.(*Queue).start in goroutine 1
	/workspace/queue/queue.go:11 +0x9f

goroutine 14 [chan send, 7 minutes]:
example.com/app/queue.(*Queue).push(0xc000012347)
	/workspace/queue/queue.go:17 +0x1d
created by example.com/app/queue.(*Queue).start in goroutine 1
	/workspace/queue/queue.go:11 +0x9f
`

func ExampleAnalyze() {
	dump, err := stackmatch.Read(strings.NewReader(stuckDump), stackmatch.ReadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	analysis, err := stackmatch.Analyze([]*stackmatch.Dump{dump}, stackmatch.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range analysis.Findings {
		fmt.Println(f.Verdict, f.Category, f.Count, f.Culprit)
	}
	// Output:
	// leak chan-send-abandoned 3 example.com/app/queue.(*Queue).push at queue/queue.go:17
}

func ExampleNewRuleSet() {
	mine := stackmatch.Rule{
		ID: "MY-7", Title: "the queue's pushers are stuck", Severity: stackmatch.SeverityCritical,
		Categories: []string{"queue-stuck"}, Doc: "Push waits for a consumer that has gone.",
		Advice: "Select on the context beside the send.", Verdict: stackmatch.VerdictLeak,
		Match: stackmatch.Match{Leaf: stackmatch.Exact("example.com/app/queue.(*Queue).push"), WaitReasons: []string{"chan send"}},
	}
	list, err := stackmatch.Override(stackmatch.Builtin(), []stackmatch.Rule{mine}, "GOR-606")
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := stackmatch.NewRuleSet(list...)
	if err != nil {
		fmt.Println(err)
		return
	}
	dump, err := stackmatch.Read(strings.NewReader(stuckDump), stackmatch.ReadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	groups := dump.GroupBy("example.com/app")
	in := stackmatch.NewContext(groups, stackmatch.ContextOptions{Main: "example.com/app", Goroutines: dump.Goroutines})
	for i := range groups {
		if rule, ok := rules.Match(&groups[i], in); ok {
			fmt.Println(rule.ID, rule.Title)
		}
	}
	// Output:
	// MY-7 the queue's pushers are stuck
}
