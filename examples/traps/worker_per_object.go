package traps

import (
	"context"
	"sync"
	"time"
)

// workerPerObject is what many operators do on purpose: one long-lived goroutine for each object, stopped with it.
func workerPerObject() Trap {
	return Trap{
		Name: "worker-per-object", Expect: ExpectSilent,
		Title: "no leak: one worker per object, started by its first reconcile and stopped when the object is deleted",
		Leak: func(ctx context.Context, _ Env) (Work, error) {
			w := &workers{life: ctx, stop: map[Object]context.CancelFunc{}}
			return Work{Reconcile: w.reconcile}, nil
		},
	}
}

type workers struct {
	life context.Context //nolint:containedctx // workers outlive the reconcile that starts them
	mu   sync.Mutex
	stop map[Object]context.CancelFunc
}

func (w *workers) reconcile(_ context.Context, object Object) error {
	key := Object{Namespace: object.Namespace, Name: object.Name}
	w.mu.Lock()
	defer w.mu.Unlock()
	stop, running := w.stop[key]
	switch {
	case object.Deleted && running:
		stop()
		delete(w.stop, key)
	case !object.Deleted && !running:
		ctx, cancel := context.WithCancel(w.life)
		w.stop[key] = cancel
		go work(ctx) //nolint:contextcheck // workers outlive the reconcile that starts them
	}
	return nil
}

func work(ctx context.Context) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
