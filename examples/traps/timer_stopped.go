package traps

import (
	"context"
	"time"
)

// timerStopped waits for a timer that was stopped.
func timerStopped() Trap {
	return Trap{
		Name: "timer-stopped", Row: "S1-14e", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "a goroutine waits for a timer that was stopped and so never fires",
		Culprit: siteOf(leakTimerStopped, ".func1"),
		Leak:    inReconcile(leakTimerStopped),
		Twin:    inReconcile(cleanTimerStopped),
	}
}

// soon is when the timer would fire.
const soon = 20 * time.Millisecond

func leakTimerStopped(context.Context, Object) error {
	timer := time.NewTimer(soon)
	defer timer.Stop()
	go func() {
		<-timer.C
	}()
	return nil
}

func cleanTimerStopped(context.Context, Object) error {
	timer := time.NewTimer(soon)
	go func() {
		defer timer.Stop()
		<-timer.C
	}()
	return nil
}
