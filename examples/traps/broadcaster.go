package traps

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// broadcaster makes an event broadcaster per rollout.
func broadcaster() Trap {
	return Trap{
		Name: "event-broadcaster", Row: "X-1", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "Reconcile makes an event broadcaster of its own and does not shut it down: two goroutines and 33 KiB each",
		Culprit: Site{Function: "k8s.io/apimachinery/pkg/watch.(*Broadcaster).loop"},
		Parts:   []string{"k8s.io/client-go/tools/record.(*eventBroadcasterImpl).StartEventWatcher.func1"},
		Leak:    inReconcile(leakBroadcaster),
		Twin:    inReconcile(cleanBroadcaster),
	}
}

func leakBroadcaster(context.Context, Object) error {
	newBroadcaster()
	return nil
}

func cleanBroadcaster(context.Context, Object) error {
	newBroadcaster().Shutdown()
	return nil
}

func newBroadcaster() record.EventBroadcaster {
	b := record.NewBroadcaster()
	_ = b.StartEventWatcher(func(*corev1.Event) {})
	return b
}
