package traps

import (
	"context"
	"fmt"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/leakguard/leakguard/examples/operator/v1alpha1"
)

// removedHandler removes handlers while they block, which does not end them.
func removedHandler() Trap {
	return Trap{
		Name: "removed-handler", Row: "S2-07d", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted,
		Title:   "Reconcile adds an event handler that blocks and removes it: its goroutine stays",
		Culprit: siteOf(addAndRemove, ".func1"),
		Leak: func(life context.Context, env Env) (Work, error) {
			return addAndRemove(env, func() { <-life.Done() }), nil
		},
		Twin: func(_ context.Context, env Env) (Work, error) { return addAndRemove(env, func() {}), nil },
	}
}

func addAndRemove(env Env, handle func()) Work {
	return Work{Reconcile: func(ctx context.Context, object Object) error {
		if object.Deleted {
			return nil
		}
		informer, err := env.Cache.GetInformer(ctx, &v1alpha1.App{})
		if err != nil {
			return fmt.Errorf("traps: %w", err)
		}
		called := make(chan struct{})
		var once sync.Once
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			once.Do(func() { close(called) })
			handle()
		}})
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
