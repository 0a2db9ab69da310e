package leakguard

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eventRecorder is what the guard needs of a manager's event recorder, the same in all supported controller-runtimes.
type eventRecorder interface {
	// Eventf sends an Event about an object; it does not wait for the API server.
	Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any)
}

// eventSink sends Events about the operator's own Pod and its owner, and keeps the Pod's condition. That is done by a
// goroutine of its own, which may have to ask the API server who the owner is: the samples do not wait for it.
type eventSink struct {
	recorder  eventRecorder
	owners    owners
	notice    func(format string, args ...any)
	queue     chan podEvent
	condition *conditionWriter
	told      bool // that the owner is not known; it belongs to the goroutine that sends
}

// podEvent is one Event that waits to be sent.
type podEvent struct{ kind, reason, action, note string }

// maxWaitingEvents bounds the Events that wait while the API server is slow; those beyond it are lost.
const maxWaitingEvents = 64

// newEventSink takes the Pod from POD_NAME, POD_NAMESPACE and, where it is set, POD_UID, which the downward API gives. Without a
// name there is nothing to send Events about, and the sink is nil. reader reads without a cache, status writes the Pod's status.
func newEventSink(
	recorder eventRecorder, reader client.Reader, status client.SubResourceWriter, notice func(format string, args ...any),
) *eventSink {
	name, namespace := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE")
	if name == "" || namespace == "" {
		return nil
	}
	pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID(os.Getenv("POD_UID"))}
	return &eventSink{
		recorder: recorder, owners: owners{reader: reader, pod: pod}, notice: notice, queue: make(chan podEvent, maxWaitingEvents),
		condition: newConditionWriter(status, notice),
	}
}

// start sends what is queued until ctx ends; stop waits for that.
func (s *eventSink) start(ctx context.Context) (stop func()) {
	if s == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-s.queue:
				s.send(ctx, e)
			case <-s.condition.wake:
				s.writeCondition(ctx)
			case <-s.condition.retry():
				s.writeCondition(ctx)
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// How long an Event waits to learn its Pod's owner, and how long the writing of the condition may take.
const (
	ownerTimeout     = 10 * time.Second
	conditionTimeout = 10 * time.Second
)

// send sends an Event about the Pod and, when it has an owner, one about that: a Pod that was killed for its memory is
// replaced, and kubectl describe shows what regards an object only.
func (s *eventSink) send(ctx context.Context, e podEvent) {
	pod, owner := s.find(ctx)
	if owner == nil {
		s.recorder.Eventf(pod, nil, e.kind, e.reason, e.action, "%s", e.note)
		return
	}
	s.recorder.Eventf(pod, owner, e.kind, e.reason, e.action, "%s", e.note)
	s.recorder.Eventf(owner, pod, e.kind, e.reason, e.action, "%s", e.note)
}

// find gives the Pod and its owner, as far as they are known, and says once when the owner is not.
func (s *eventSink) find(ctx context.Context) (pod, owner *corev1.ObjectReference) {
	limited, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	pod, owner, err := s.owners.find(limited)
	if err != nil && !s.told && ctx.Err() == nil {
		s.told = true
		s.notice("Events about leaks do not reach the owner of the operator's Pod: it takes get on pods and replicasets: %v", err)
	}
	return pod, owner
}

// writeCondition brings the Pod's condition up to date.
func (s *eventSink) writeCondition(ctx context.Context) {
	pod, _ := s.find(ctx)
	limited, cancel := context.WithTimeout(ctx, conditionTimeout)
	defer cancel()
	s.condition.write(limited, pod)
}

// put queues an Event; it does not block. The Events of two actions are two, also when the rest is the same: the API's
// clients join those that differ in their note only.
func (g *Guard) put(e podEvent) {
	sink := g.events.Load()
	if sink == nil {
		return
	}
	e.note, e.action = truncate(e.note, maxNote), truncate(e.action, maxAction)
	select {
	case sink.queue <- e:
	default:
		g.addNotice("Events were lost: the API server takes too long")
	}
}

// emit sends an Event about a finding. Its note holds the names of the code, never of objects.
func (g *Guard) emit(f *Finding, reason string) {
	kind := corev1.EventTypeWarning
	if f.State == StateResolved {
		kind = corev1.EventTypeNormal
	}
	g.put(podEvent{kind: kind, reason: reason, action: "Watch/" + f.Fingerprint, note: f.String() + ": " + f.Reason})
}

// setCondition has the Pod's condition say what the breakers do; without breakers there is none.
func (g *Guard) setCondition(now time.Time) {
	if sink := g.events.Load(); sink != nil && g.options.Breaker != nil {
		sink.condition.set(g.breakers.condition(), now)
	}
}

// The longest note and action that the API server takes, in bytes.
const (
	maxNote   = 1024
	maxAction = 128
)

func truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "..."
}
