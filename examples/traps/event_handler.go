package traps

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leakguard/leakguard/examples/operator/v1alpha1"
)

// eventHandlers adds a handler per rollout to an informer that all share.
func eventHandlers() Trap {
	return Trap{
		Name: "event-handlers", Row: "S2-07a", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted, Controller: LeakyController, ByType: true,
		Title:   "Reconcile adds an event handler to a shared informer and never removes it: two goroutines and a ring of 1024 each",
		Culprit: siteOf(addHandler, ""),
		Parts:   []string{"k8s.io/client-go/tools/cache.(*processorListener).pop", "k8s.io/client-go/tools/cache.(*processorListener).run"},
		Leak:    withInformer(&corev1.ConfigMap{}, leakEventHandlers),
		Twin:    withInformer(&corev1.ConfigMap{}, cleanEventHandlers),
	}
}

func withInformer(kind client.Object, work func(cache.Informer) error) Start {
	return func(_ context.Context, env Env) (Work, error) {
		return Work{Reconcile: func(ctx context.Context, object Object) error {
			if object.Deleted {
				return nil
			}
			informer, err := env.Cache.GetInformer(ctx, kind)
			if err != nil {
				return fmt.Errorf("traps: %w", err)
			}
			return work(informer)
		}}, nil
	}
}

func leakEventHandlers(informer cache.Informer) error {
	_, err := addHandler(informer)
	return err
}

func cleanEventHandlers(informer cache.Informer) error {
	registration, err := addHandler(informer)
	if err != nil {
		return err
	}
	return informer.RemoveEventHandler(registration)
}

func addHandler(informer cache.Informer) (toolscache.ResourceEventHandlerRegistration, error) {
	return informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
}

// blockedHandler is one handler that does not return; all later notifications wait for it in memory.
func blockedHandler() Trap {
	return Trap{
		Name: "blocked-handler", Row: "S2-07c", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted,
		Within:  170, // a handler may take five minutes
		Title:   "an event handler blocks for ever, and all later notifications of its informer wait for it in memory",
		Culprit: siteOf(handleWith, ".func1"),
		Leak: func(life context.Context, env Env) (Work, error) {
			return handleApps(env, func(any) { <-life.Done() }), nil
		},
		Twin: func(_ context.Context, env Env) (Work, error) {
			return handleApps(env, func(any) {}), nil
		},
	}
}

func handleApps(env Env, handle func(any)) Work {
	return Work{Run: func(ctx context.Context) error {
		informer, err := env.Cache.GetInformer(ctx, &v1alpha1.App{})
		if err != nil {
			return fmt.Errorf("traps: %w", err)
		}
		if err = handleWith(informer, handle); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}}
}

func handleWith(informer cache.Informer, handle func(any)) error {
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) }, DeleteFunc: handle,
	})
	return err
}
