package leakguard

import (
	"context"
	"fmt"
	"runtime/pprof"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/leakguard/leakguard/probes"
)

// labelled wraps a plain runnable so that its goroutines carry its type as their controller. What the manager treats by
// its type (controllers, servers, clusters, runnables with a warm-up) is given back as it is.
func labelled(r manager.Runnable) manager.Runnable {
	if _, _, isController := controllerFields(r); isController {
		return r
	}
	switch r.(type) {
	case nil, *Guard, *manager.Server, webhook.Server, interface{ GetCache() cache.Cache }, interface{ Warmup(context.Context) error }:
		return r
	}
	l := labelledRunnable{Runnable: r, name: fmt.Sprintf("runnable %T", r)}
	if e, ok := r.(manager.LeaderElectionRunnable); ok {
		return &electedRunnable{labelledRunnable: l, LeaderElectionRunnable: e}
	}
	return &l
}

type labelledRunnable struct {
	manager.Runnable
	name string
}

// Start implements manager.Runnable.
func (l *labelledRunnable) Start(ctx context.Context) (err error) {
	pprof.Do(ctx, pprof.Labels(probes.LabelController, l.name), func(ctx context.Context) { err = l.Runnable.Start(ctx) })
	return err
}

// electedRunnable keeps what the runnable says of leader election; without it the manager takes a runnable for one
// that needs the lease.
type electedRunnable struct {
	labelledRunnable
	manager.LeaderElectionRunnable
}
