package traps

import "context"

// fullChannel is a buffer that does not help for long.
func fullChannel() Trap {
	return Trap{
		Name: "full-channel", Row: "S1-13", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "a goroutine sends two results on a channel with room for one, and nobody receives",
		Culprit: siteOf(produce, ""),
		Leak:    inReconcile(leakFullChannel),
		Twin:    inReconcile(cleanFullChannel),
	}
}

func leakFullChannel(_ context.Context, object Object) error {
	go produce(make(chan string, 1), object)
	return nil
}

func cleanFullChannel(_ context.Context, object Object) error {
	go produce(make(chan string, 2), object)
	return nil
}

func produce(results chan<- string, object Object) {
	results <- "state of " + object.Name
	results <- "events of " + object.Name
}
