package leakguard

import (
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// eventRecorder is what the guard needs of a manager's event recorder, the same in all supported controller-runtimes.
type eventRecorder interface {
	// Eventf sends an Event about an object; it does not wait for the API server.
	Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any)
}

// eventSink sends Events about the operator's own Pod.
type eventSink struct {
	recorder eventRecorder
	pod      *corev1.Pod
}

// newEventSink takes the Pod from POD_NAME, POD_NAMESPACE and, where it is set, POD_UID, which the downward API gives. Without a
// name there is nothing to send Events about, and the sink is nil.
func newEventSink(recorder eventRecorder) *eventSink {
	name, namespace := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE")
	if name == "" || namespace == "" {
		return nil
	}
	pod := &corev1.Pod{}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	pod.Name, pod.Namespace, pod.UID = name, namespace, types.UID(os.Getenv("POD_UID"))
	return &eventSink{recorder: recorder, pod: pod}
}

// emit sends an Event about a finding. Its note holds the names of the code, never of objects.
func (g *Guard) emit(f *Finding, reason string) {
	sink := g.events.Load()
	if sink == nil {
		return
	}
	kind := corev1.EventTypeWarning
	if f.State == StateResolved {
		kind = corev1.EventTypeNormal
	}
	sink.recorder.Eventf(sink.pod, nil, kind, reason, "Watch", "%s", truncate(f.String()+": "+f.Reason))
}

// emitBreaker sends an Event about a controller that was paused or let go on.
func (g *Guard) emitBreaker(c breakerChange) {
	sink := g.events.Load()
	if sink == nil {
		return
	}
	sink.recorder.Eventf(sink.pod, nil, corev1.EventTypeWarning, "LeakBreaker", "Pause",
		"breaker of controller %s is %s for %s: %d goroutines leaked", c.controller, c.state, c.pause, c.leaked)
}

// maxNote is the longest note that the API server takes, in bytes.
const maxNote = 1024

func truncate(note string) string {
	if len(note) <= maxNote {
		return note
	}
	return note[:maxNote-3] + "..."
}
