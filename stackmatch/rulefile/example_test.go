package rulefile_test

import (
	"fmt"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

// A rule of one's own before the built-in ones, and one of those changed.
func Example() {
	file, err := rulefile.Parse("rules.yaml", []byte(`schema: 1
rules:
  - id: APP-001
    title: upload workers wait for a reply
    severity: warning
    categories: [upload]
    doc: The reply channel has no reader once the request was cancelled.
    advice: Give the reply channel room for one.
    verdict: leak
    match:
      frames: [{prefix: example.com/app/upload.}]
    when: group.count >= 10 && group.wait > duration("5m")
  - id: GOR-505
    severity: critical
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := file.RuleSet(rulefile.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	group := stackmatch.Group{
		Count: 12, Oldest: 20 * time.Minute, WaitReason: "chan receive",
		Stack: []frame.Frame{{Function: "example.com/app/upload.(*Worker).reply"}},
	}
	if rule, ok := rules.Match(&group, nil); ok {
		fmt.Println(rule.ID, rule.Verdict, rule.Advice)
	}
	changed, _ := rules.Rule("GOR-505")
	fmt.Println(changed.ID, changed.Severity, changed.Verdict)
	// Output:
	// APP-001 leak Give the reply channel room for one.
	// GOR-505 critical leak
}

// What is wrong with a file is said with the line, the rule and the field.
func ExampleProblems() {
	_, err := rulefile.Parse("rules.yaml", []byte(`schema: 1
rules:
  - id: GOR-505
    severity: critcal
    when: group.slopePerMinut > 1.0
`))
	for _, p := range rulefile.Problems(err) {
		fmt.Println(p.Place(), p.Message())
	}
	// Output:
	// rules.yaml:4 rule GOR-505: severity: "critcal" is none of info, warning, critical; did you mean "critical"?
	// rules.yaml:5 rule GOR-505: when: at column 6: a group has no field "slopePerMinut"; did you mean "slopePerMinute"?
}

// Growth of groups in dumps that were taken at known times.
func ExampleSlopes() {
	var slopes rulefile.Slopes
	group := stackmatch.Group{ID: 1}
	start := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	for minute := range 5 {
		group.Count = 10 + 3*minute
		slopes.Observe(start.Add(time.Duration(minute)*time.Minute), []stackmatch.Group{group})
	}
	perMinute, known := slopes.PerMinute(&group, nil)
	fmt.Println(perMinute, known)
	// Output: 3 true
}
