package traps

import (
	"context"
	"fmt"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/leakguard/leakguard/examples/operator/v1alpha1"
)

// removedHandler removes handlers while they block, which does not end them.
func removedHandler() Trap {
	return Trap{
		Name: "removed-handler", Row: "S2-07d", Expect: ExpectAlarm, NeedsAPI: true, Grows: Goroutines, Controller: LeakyController,
		Title:   "Reconcile adds an event handler that blocks and removes it: its goroutine stays",
		Culprit: siteOf(waitFor, ".func1"), Also: []string{siteOf(waitFor, ".func1").Function},
		Leak: func(life context.Context, env Env) (Work, error) { return addAndRemove(env, life.Done()), nil },
		Twin: func(_ context.Context, env Env) (Work, error) { return addAndRemove(env, closed()), nil },
	}
}

// waitFor makes a handler that says that it was called and then blocks.
func waitFor(called chan<- struct{}, until <-chan struct{}) func(any) {
	return func(any) {
		select {
		case called <- struct{}{}:
		default:
		}
		<-until
	}
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func addAndRemove(env Env, until <-chan struct{}) Work {
	return Work{Reconcile: func(ctx context.Context, object Object) error {
		if object.Deleted {
			return nil
		}
		informer, err := env.Cache.GetInformer(ctx, &v1alpha1.App{})
		if err != nil {
			return fmt.Errorf("traps: %w", err)
		}
		called := make(chan struct{}, 1)
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: waitFor(called, until)})
		if err != nil {
			return fmt.Errorf("traps: %w", err)
		}
		select {
		case <-called:
		case <-time.After(time.Second):
		}
		return informer.RemoveEventHandler(registration)
	}}
}
