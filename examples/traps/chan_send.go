package traps

import "context"

// chanSend is a result that nobody waits for any more.
func chanSend() Trap {
	return Trap{
		Name: "chan-send", Row: "S1-07", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "a goroutine sends its result on an unbuffered channel after the receiver gave up",
		Culprit: siteOf(leakChanSend, ".func1"),
		Leak:    inReconcile(leakChanSend),
		Twin:    inReconcile(cleanChanSend),
	}
}

func leakChanSend(ctx context.Context, object Object) error {
	result := make(chan string)
	go func() {
		result <- "state of " + object.Name
	}()
	impatient(ctx, result)
	return nil
}

func cleanChanSend(ctx context.Context, object Object) error {
	result := make(chan string, 1)
	go func() {
		result <- "state of " + object.Name
	}()
	impatient(ctx, result)
	return nil
}

// impatient would wait for a result, but its time is over already.
func impatient(ctx context.Context, result <-chan string) {
	ctx, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	if ctx.Err() != nil {
		return
	}
	select {
	case <-result:
	case <-ctx.Done():
	}
}
