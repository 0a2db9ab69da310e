package traps

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// The traps that leave no goroutine behind leave about half a MiB of heap at each rollout instead, so that a demo shows in
// minutes what takes a real operator hours.
const (
	stateSize = 16 << 10 // what a closure or an object holds on to
	states    = 32       // of them a rollout
)

// state is what is worth keeping of an object, or so somebody thought.
type state struct {
	name string
	data [stateSize]byte
}

// replicas is how many Pods a rollout makes.
const replicas = 128

// newPod makes a Pod of about four KiB.
func newPod(object Object) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name, UID: uuid.NewUUID()},
		Spec:       corev1.PodSpec{Containers: make([]corev1.Container, 8)},
	}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Image = object.Name
	}
	return pod
}

// podCache keeps Pods by their UID.
type podCache struct {
	mu    sync.Mutex
	byUID map[types.UID]*corev1.Pod
	of    map[string][]types.UID // the Pods of each object's last rollout
	evict bool                   // those of the rollout before
}

func newPodCache(evict bool) *podCache {
	return &podCache{byUID: map[types.UID]*corev1.Pod{}, of: map[string][]types.UID{}, evict: evict}
}

// rollout replaces all Pods of an object.
func (c *podCache) rollout(_ context.Context, object Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.evict {
		for _, uid := range c.of[object.Name] {
			delete(c.byUID, uid)
		}
	}
	if object.Deleted {
		delete(c.of, object.Name)
		return nil
	}
	uids := make([]types.UID, 0, replicas)
	for range replicas {
		pod := newPod(object)
		c.byUID[pod.UID] = pod
		uids = append(uids, pod.UID)
	}
	c.of[object.Name] = uids
	return nil
}
