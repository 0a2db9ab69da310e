package traps

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// handlerClosures keeps a list of functions, each of which captures more than it needs.
func handlerClosures() Trap {
	return Trap{
		Name: "handler-closures", Row: "S2-04", Expect: ExpectAlarm, Grows: Heap,
		Title:   "callbacks that capture whole objects are added to a list at each rollout and stay there",
		Culprit: siteOf(newState, ""),
		Leak:    inReconcile((&callbacks{}).leak),
		Twin:    inReconcile((&callbacks{}).clean),
	}
}

func newState(object Object) *state { return &state{name: object.Name} }

type callbacks struct {
	mu   sync.Mutex
	list []func() string
}

func (c *callbacks) leak(_ context.Context, object Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range states {
		s := newState(object)
		c.list = append(c.list, func() string { return s.name })
	}
	return nil
}

func (c *callbacks) clean(_ context.Context, object Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range states {
		name := newState(object).name
		c.list = append(c.list, func() string { return name })
	}
	return nil
}

// oldVersions keeps every version of an object that was ever seen.
func oldVersions() Trap {
	return Trap{
		Name: "old-versions", Row: "S2-05", Expect: ExpectAlarm, Grows: Heap,
		Title:   "a history of each object's old versions, deep copies or not, is never cut",
		Culprit: siteOf(copyPod, ""),
		Leak:    history(0),
		Twin:    history(1),
	}
}

// history keeps so many last rollouts of each object; 0 is all of them.
func history(keep int) Start {
	return func(context.Context, Env) (Work, error) {
		var mu sync.Mutex
		versions := map[string][][]*corev1.Pod{}
		return Work{Reconcile: func(_ context.Context, object Object) error {
			mu.Lock()
			defer mu.Unlock()
			pod := newPod(object)
			var copies []*corev1.Pod
			for range replicas {
				copies = append(copies, copyPod(pod))
			}
			all := append(versions[object.Name], copies)
			if keep > 0 {
				all = all[max(0, len(all)-keep):]
				if object.Deleted {
					all = nil
				}
			}
			versions[object.Name] = all
			return nil
		}}, nil
	}
}

func copyPod(pod *corev1.Pod) *corev1.Pod { return pod.DeepCopy() }
