// Package stackmatchtest tests rules for goroutine dumps with fixtures that say on the line what they expect.
//
// # Usage
//
//	func TestRules(t *testing.T) {
//		rules, err := stackmatch.NewRuleSet(append(myRules, stackmatch.Builtin()...)...)
//		if err != nil {
//			t.Fatal(err)
//		}
//		stackmatchtest.Run(t, "testdata/rules", rules)
//	}
//
// A fixture is a text file with one or more scenarios. Each holds one goroutine dump, or several of one process in the
// order they were taken:
//
//	// Lines that begin with two slashes are comments.
//	=== leak
//	goroutine 7 [chan send, 9 minutes]: // x12 // want MY-7 leak count=12 culprit=example.com/app.(*Queue).push
//	example.com/app.(*Queue).push(0xc000012345)
//		/src/app/queue.go:17 +0x1d
//	created by example.com/app.(*Queue).start in goroutine 3
//		/src/app/queue.go:11 +0x9f
//	=== growing objects=40,41
//	goroutine 7 [select]: // x40
//	example.com/app.(*Worker).run(0xc000012345)
//		/src/app/worker.go:17 +0x1d
//	---
//	goroutine 7 [select]: // x400 // want MY-8 suspect
//	example.com/app.(*Worker).run(0xc000012345)
//		/src/app/worker.go:17 +0x1d
//	=== clean
//	...
//
// Behind the header of a goroutine, "// xN" repeats it N times with ids of their own and its minutes spread evenly
// from the given number down, as a steady leak's are; "// xN same" gives all of them the same minutes. "// want RULE" says that
// this goroutine must be part of a finding of that rule in the last dump of the scenario; a verdict, count=N, culprit=FUNCTION and
// category=NAME narrow it. Every finding that is not harmless must be wanted: a scenario without a want is a clean one.
// The same works behind the records of debug=1 dumps ("12 @ 0x1 0x2 // want RULE"), without the repetition. A
// scenario's line may set objects=N,N and main=MODULE, as the command's flags do.
//
// # Cost
//
// A fixture is expanded in memory; a few hundred repetitions are nothing.
//
// # Concurrency
//
// All functions may be called concurrently.
//
// # Limits
//
// Fixtures are text: profiles in the form of protocol buffers cannot say on the line what they expect.
package stackmatchtest
