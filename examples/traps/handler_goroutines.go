package traps

import (
	"context"
	"time"
)

// handlerGoroutines starts a goroutine for each event, as many at once as events come in while one is under way.
func handlerGoroutines() Trap {
	return Trap{
		Name: "handler-goroutines", Row: "S1-18", Expect: ExpectNotice, NeedsAPI: true, Grows: Goroutines,
		Controller: "handlers of v1alpha1.App informer", Rules: []string{"orphaned"},
		Title:   "an event handler starts a goroutine for each event, which takes two seconds",
		Culprit: siteOf(process, ""),
		Leak: func(_ context.Context, env Env) (Work, error) {
			return handleApps(env, func(any) { go process(env.scaled(2 * time.Second)) }), nil
		},
		Twin: func(_ context.Context, env Env) (Work, error) {
			return handleApps(env, func(any) { go process(0) }), nil
		},
	}
}

func process(d time.Duration) {
	time.Sleep(d)
}
