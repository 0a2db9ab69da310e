package traps

import "context"

// globalChannel is the same as chanSend on a channel that the whole process can reach: no proof by reachability finds it.
func globalChannel() Trap {
	return Trap{
		Name: "global-channel", Row: "S1-07g", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "a goroutine sends on a package-level channel that nobody reads",
		Culprit: siteOf(leakGlobalChannel, ".func1"),
		Leak:    inReconcile(leakGlobalChannel),
		Twin:    inReconcile(cleanGlobalChannel),
	}
}

// audit is never read.
var audit = make(chan string)

func leakGlobalChannel(_ context.Context, object Object) error {
	go func() {
		audit <- object.Name
	}()
	return nil
}

func cleanGlobalChannel(_ context.Context, object Object) error {
	go func() {
		select {
		case audit <- object.Name:
		default: // better a lost line than a lost goroutine
		}
	}()
	return nil
}
