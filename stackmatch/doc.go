// Package stackmatch reads goroutine dumps and profiles, groups the goroutines, and says what is wrong with them.
//
// # Usage
//
//	d, err := stackmatch.ReadFile("dump.txt", stackmatch.ReadOptions{})
//	if err != nil {
//		return err
//	}
//	for _, g := range d.GroupBy("example.com/operator") {
//		fmt.Println(g.Count, g.WaitReason, g.Culprit)
//	}
//
// [Read] finds the form by looking at the bytes: the text of [runtime.Stack], of debug=2 and of crashes from Go 1.4 to 1.27,
// the text of debug=1, and the profile, each with or without gzip, and the texts also inside log lines, JSON strings and
// test output. [ReadAll] gives every dump of an input. [ProfileReader] is for reading the profile of a running program
// every few seconds, [CaptureProfile], [CaptureText] and [CaptureLeaked] take dumps of this process.
//
// # Cost
//
// Text: goroutines of a known stack allocate nothing, and a new stack less than once on average. This is a dump of the
// usual stacks of an operator, read in turn with github.com/DataDog/gostackparse v0.7.0, as printed by
//
//	cd test/bench && go test -run xxx -bench Speedup -benchtime 30x .
//
// on a shared machine with two cores. Take the ratios, not the speeds:
//
//	goroutines   MB/s   times faster   with GroupsOnly
//	       100   1100            3.2               3.7
//	     1,000   1600             10                13
//	     2,000   1600            6.3               7.4
//	    10,000   1200            5.2               7.8
//	   100,000    630            8.1               8.5
//
// Time is linear in the input. Memory is at most 64 bytes for each byte of the worst input, and 4 MiB; for real dumps it is
// about 230 bytes for each goroutine, and with GroupsOnly 4 MiB and one byte for each, so that a million goroutines are read
// in under 3 MB (BenchmarkMillion). Lines are of any length. Input without a dump is read in fixed memory.
//
// Profile: reading one like the one before allocates nothing but what compress/gzip does. With 10,000 goroutines of
// different labels it takes about a tenth of the time that writing the profile takes, with common labels a hundredth:
//
//	go test -run xxx -bench Tick -benchtime 10x ./stackmatch
//
// # Concurrency
//
// All functions may be called concurrently; a [ProfileReader] may not. What the functions return shares stacks and labels,
// which nobody may change. No function starts goroutines. [CaptureText] stops the world, see there.
//
// # Limits
//
// A profile has no goroutine ids, creators and waiting times, and cannot tell a nil channel from another. The text of
// debug=1 leaves out the runtime's frames at the leaf, so the wait reason is guessed from addresses and may be empty.
// Two dumps in one input are told apart by a repeated goroutine id, by text between them, or by the missing empty line; in
// other cases the goroutine that took the second dump is counted to the first. A dump that was cut off at the end of a
// goroutine cannot be told from a whole one. Of more than 1,024 frames of a goroutine the outer ones are left out.
package stackmatch
