package traps

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// registeredBroadcaster is event-broadcaster where leakguard is told of what is made.
func registeredBroadcaster() Trap {
	return Trap{
		Name: "registered-broadcaster", Row: "X-1", Expect: ExpectAlarm, Grows: Counted, Controller: LeakyController,
		Title:   "Reconcile makes an event broadcaster, passes it through leakguard.Resources, and does not shut it down",
		Culprit: siteOf(countedBroadcaster, ""),
		Parts:   []string{"k8s.io/apimachinery/pkg/watch.(*Broadcaster).loop", "k8s.io/client-go/tools/record.(*eventBroadcasterImpl).StartEventWatcher.func1"},
		Leak: inReconcile(func(ctx context.Context, _ Object) error {
			countedBroadcaster(ctx)
			return nil
		}),
		Twin: inReconcile(func(ctx context.Context, _ Object) error {
			countedBroadcaster(ctx).Shutdown()
			return nil
		}),
	}
}

func countedBroadcaster(ctx context.Context) record.EventBroadcaster {
	b := leakguard.Resources().Broadcaster(ctx, record.NewBroadcaster())
	_ = b.StartEventWatcher(func(*corev1.Event) {})
	return b
}

// registeredQueue is workqueue where leakguard is told of what is made.
func registeredQueue() Trap {
	return Trap{
		Name: "registered-workqueue", Row: "X-2", Expect: ExpectAlarm, Grows: Counted, Controller: LeakyController,
		Title:   "Reconcile makes a workqueue, passes it through leakguard.Resources, and does not shut it down",
		Culprit: siteOf(countedQueue, ""),
		Parts:   []string{"k8s.io/client-go/util/workqueue.(*delayingType).waitingLoop"},
		Leak: inReconcile(func(ctx context.Context, object Object) error {
			countedQueue(ctx).Add(object.Name)
			return nil
		}),
		Twin: inReconcile(func(ctx context.Context, object Object) error {
			queue := countedQueue(ctx)
			defer queue.ShutDown()
			queue.Add(object.Name)
			return nil
		}),
	}
}

func countedQueue(ctx context.Context) workqueue.TypedRateLimitingInterface[string] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Millisecond, time.Hour)
	return clientgo.Queue(ctx, leakguard.Resources(), workqueue.NewTypedRateLimitingQueue[string](limiter))
}

// itemsNeverDone is a worker of a queue of the operator's own that does not call Done for what fails.
func itemsNeverDone() Trap {
	return Trap{
		Name: "items-never-done", Row: "X-2", Expect: ExpectAlarm, Grows: Counted,
		Within:  300, // a worker may take ten minutes for an item
		Title:   "a worker of a queue that was passed through leakguard.Resources returns early without Done: such an item is never handed out again",
		Culprit: siteOf(countedQueue, ""),
		Leak:    serving(1, workWithoutDone),
		Twin:    serving(1, workAndDone),
	}
}

// keysNeverForgotten is a worker that does not call Forget for what failed for good.
func keysNeverForgotten() Trap {
	return Trap{
		Name: "keys-never-forgotten", Row: "X-3", Expect: ExpectAlarm, Grows: Counted,
		Within:  120, // it must climb, and go on
		Title:   "a worker of a queue that was passed through leakguard.Resources gives keys up without Forget: the rate limiter remembers each",
		Culprit: siteOf(countedQueue, ""),
		Leak:    serving(100, workWithoutForget),
		Twin:    serving(100, workAndDone),
	}
}

// items counts the items of all queues, so that no two are the same.
var items atomic.Uint64

// serving has a queue, to which each rollout adds some items again after a failure, and a worker.
func serving(each int, work func(q workqueue.TypedRateLimitingInterface[string], item string)) Start {
	return func(life context.Context, _ Env) (Work, error) {
		queue := countedQueue(life)
		done := onObjects(func(context.Context, Object) error {
			for range each {
				queue.AddRateLimited(strconv.FormatUint(items.Add(1), 10))
			}
			return nil
		})
		done.Run = func(ctx context.Context) error {
			defer context.AfterFunc(ctx, queue.ShutDown)()
			for {
				item, shutdown := queue.Get()
				if shutdown {
					return nil
				}
				work(queue, item)
			}
		}
		return done, nil
	}
}

var errGivenUp = errors.New("traps: given up")

// try fails for every item for good.
func try(string) error { return errGivenUp }

func workWithoutDone(queue workqueue.TypedRateLimitingInterface[string], item string) {
	queue.Forget(item)
	if err := try(item); err != nil {
		return
	}
	queue.Done(item)
}

func workWithoutForget(queue workqueue.TypedRateLimitingInterface[string], item string) {
	defer queue.Done(item)
	if err := try(item); err != nil {
		return
	}
	queue.Forget(item)
}

func workAndDone(queue workqueue.TypedRateLimitingInterface[string], item string) {
	defer queue.Done(item)
	defer queue.Forget(item)
	_ = try(item)
}
