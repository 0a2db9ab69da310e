package traps

import (
	"context"

	"k8s.io/client-go/util/workqueue"
)

// workQueue makes a workqueue per rollout.
func workQueue() Trap {
	return Trap{
		Name: "workqueue", Row: "X-2", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "Reconcile makes a workqueue and does not shut it down: a goroutine and 8 KiB each",
		Culprit: Site{Function: "k8s.io/client-go/util/workqueue.(*delayingType).waitingLoop"},
		Leak:    inReconcile(leakWorkQueue),
		Twin:    inReconcile(cleanWorkQueue),
	}
}

func leakWorkQueue(_ context.Context, object Object) error {
	newQueue().Add(object)
	return nil
}

func cleanWorkQueue(_ context.Context, object Object) error {
	queue := newQueue()
	queue.Add(object)
	queue.ShutDown()
	return nil
}

func newQueue() workqueue.TypedRateLimitingInterface[Object] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Object]())
}
