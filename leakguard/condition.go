package leakguard

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ControllerPaused is the type of the condition that a guard with [Options].Breaker keeps on the operator's own Pod, where
// POD_NAME and POD_NAMESPACE are set. It is True while a controller is paused, and its message names the controllers and
// says until when; else it is False, as it is from the start of the guard on. That takes patch on pods/status.
const ControllerPaused corev1.PodConditionType = "leakguard.dev/ControllerPaused"

// podCondition is what the Pod is to say of its controllers.
type podCondition struct {
	paused  bool
	message string
	since   time.Time // from when on paused has been as it is
}

// conditionWriter keeps the condition ControllerPaused. set is called by the sampler and does not wait; the rest belongs to
// the goroutine that sends Events.
type conditionWriter struct {
	status client.SubResourceWriter
	notice func(format string, args ...any)
	wake   chan struct{} // holds one
	want   atomic.Pointer[podCondition]
	again  *time.Timer // of the next attempt; nil before the first failure
	wait   time.Duration
}

func newConditionWriter(status client.SubResourceWriter, notice func(format string, args ...any)) *conditionWriter {
	return &conditionWriter{status: status, notice: notice, wake: make(chan struct{}, 1)}
}

// set makes known what the condition is to say from now on. What it was to say before and has not is left out.
func (w *conditionWriter) set(c podCondition, now time.Time) {
	c.since = now
	if before := w.want.Load(); before != nil && before.paused == c.paused {
		if before.message == c.message {
			return
		}
		c.since = before.since
	}
	w.want.Store(&c)
	select {
	case w.wake <- struct{}{}:
	default: // the goroutine has not seen the last one yet, and will see this one
	}
}

// retry tells when it is time for another attempt; nil when none is due.
func (w *conditionWriter) retry() <-chan time.Time {
	if w.again == nil {
		return nil
	}
	return w.again.C
}

// The first and the longest wait for another attempt to write the condition.
const (
	conditionRetry    = 10 * time.Second
	maxConditionRetry = 5 * time.Minute
)

// write brings the condition to the Pod. What the API server refuses is tried again at the next change; other errors pass.
func (w *conditionWriter) write(ctx context.Context, pod *corev1.ObjectReference) {
	if w.again != nil {
		w.again.Stop()
		w.again = nil
	}
	c := w.want.Load()
	if c == nil {
		return
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(pod.APIVersion, pod.Kind))
	object.SetNamespace(pod.Namespace)
	object.SetName(pod.Name)
	patch, err := c.patch(pod.UID)
	if err == nil {
		err = w.status.Patch(ctx, object, client.RawPatch(types.StrategicMergePatchType, patch))
	}
	switch {
	case err == nil:
		w.wait = 0
	case isRefused(err):
		w.notice("the condition %s cannot be written to the operator's Pod: it takes patch on pods/status: %v", ControllerPaused, err)
	default:
		w.wait = min(max(2*w.wait, conditionRetry), maxConditionRetry)
		w.again = time.NewTimer(w.wait)
	}
}

// isRefused reports whether the API server has understood a request and will answer it as before.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsUnsupportedMediaType(err)
}

// patch gives the strategic merge patch, which leaves the conditions of other types alone. With the UID the server refuses it
// when the Pod is another one of the same name by now.
func (c *podCondition) patch(uid types.UID) ([]byte, error) {
	condition := map[string]any{
		"type": ControllerPaused, "status": corev1.ConditionFalse, "reason": "NoControllerPaused", "message": c.message,
		"lastTransitionTime": metav1.NewTime(c.since),
	}
	if c.paused {
		condition["status"], condition["reason"] = corev1.ConditionTrue, "ControllerLeaks"
	}
	patch := map[string]any{"status": map[string]any{"conditions": []any{condition}}}
	if uid != "" {
		patch["metadata"] = map[string]any{"uid": uid}
	}
	return json.Marshal(patch)
}
