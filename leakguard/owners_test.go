package leakguard //nolint:testpackage // the owners are inside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answers is a reader that knows who controls an object, "Kind/name", by "Kind/name" too: "" for nobody. An error is what a
// read gives.
type answers struct {
	client.Reader
	controllers map[string]string
	errs        map[string]error
	asked       []string
}

func (a *answers) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	id := object.GetObjectKind().GroupVersionKind().Kind + "/" + key.Name
	a.asked = append(a.asked, id)
	if err := a.errs[id]; err != nil {
		return err
	}
	controller, known := a.controllers[id]
	if !known {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	object.SetNamespace(key.Namespace)
	object.SetUID("uid of read")
	if kind, name, ok := strings.Cut(controller, "/"); ok {
		yes := true
		object.SetOwnerReferences([]metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Other", Name: "owner that does not control"},
			{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "uid of owner", Controller: &yes},
		})
	}
	return nil
}

func operatorPod() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "system", Name: "operator-0"}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	for _, tt := range []struct {
		name        string
		controllers map[string]string
		errs        map[string]error
		owner       string
		fails       bool
		asked       int // by two calls
	}{
		{"nobody's", map[string]string{"Pod/operator-0": ""}, nil, "", false, 1},
		{"a node's own", map[string]string{"Pod/operator-0": "Node/n"}, nil, "", false, 1},
		{"of a stateful set", map[string]string{"Pod/operator-0": "StatefulSet/s"}, nil, "StatefulSet/s", false, 1},
		{"of a deployment", map[string]string{"Pod/operator-0": "ReplicaSet/r", "ReplicaSet/r": "Deployment/d"}, nil, "Deployment/d", false, 2},
		{"of a replica set", map[string]string{"Pod/operator-0": "ReplicaSet/r", "ReplicaSet/r": ""}, nil, "ReplicaSet/r", false, 2},
		{"gone", map[string]string{}, nil, "", true, 1},
		{"not to be read", nil, map[string]error{"Pod/operator-0": forbidden}, "", true, 1},
		{"of what may not be read", map[string]string{"Pod/operator-0": "ReplicaSet/r"}, map[string]error{"ReplicaSet/r": forbidden}, "ReplicaSet/r", true, 2},
		{"not there for now", nil, map[string]error{"Pod/operator-0": errors.New("connection refused")}, "", true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := &answers{controllers: tt.controllers, errs: tt.errs}
			o := owners{reader: a, pod: operatorPod()}
			_, owner, err := o.find(t.Context())
			got := ""
			if owner != nil {
				got = owner.Kind + "/" + owner.Name
			}
			if got != tt.owner || (err != nil) != tt.fails {
				t.Errorf("got owner %q and error %v, want %q and an error: %t", got, err, tt.owner, tt.fails)
			}
			if owner != nil && (owner.Namespace != "system" || owner.UID != "uid of owner" || owner.APIVersion != "apps/v1") {
				t.Errorf("got the reference %v", owner)
			}
			pod, again, _ := o.find(t.Context())
			if diff := cmp.Diff(owner, again); diff != "" {
				t.Errorf("the second time (-first +second):\n%s", diff)
			}
			if _, known := tt.controllers["Pod/operator-0"]; known != (pod.UID == "uid of read") {
				t.Errorf("got the UID %q of a Pod that can be read: %t", pod.UID, known)
			}
			if len(a.asked) != tt.asked {
				t.Errorf("asked for %q, want %d reads", a.asked, tt.asked)
			}
		})
	}
}

// sent is a recorder of Events that keeps what they regard.
type sent struct {
	mu   sync.Mutex
	list []string
}

func (s *sent) Eventf(regarding, related runtime.Object, _, reason, action, note string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, fmt.Sprintf("%s %s of %s, related %s: %s", reason, action, nameOf(regarding), nameOf(related), fmt.Sprintf(note, args...)))
}

func (s *sent) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

func nameOf(o runtime.Object) string {
	if ref, ok := o.(*corev1.ObjectReference); ok {
		return ref.Kind
	}
	return "nothing"
}

// TestEventsWithoutPermission regards the Pod alone, and says so once.
func TestEventsWithoutPermission(t *testing.T) {
	t.Parallel()
	var recorder sent
	var notices []string
	reader := &answers{errs: map[string]error{"Pod/operator-0": apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))}}
	s := &eventSink{
		recorder: &recorder, owners: owners{reader: reader, pod: operatorPod()}, queue: make(chan podEvent, 1),
		notice: func(format string, args ...any) { notices = append(notices, fmt.Sprintf(format, args...)) },
	}
	for range 2 {
		s.send(t.Context(), podEvent{reason: "LeakFound", action: "Watch/1", note: "100% lost"})
	}
	want := []string{"LeakFound Watch/1 of Pod, related nothing: 100% lost", "LeakFound Watch/1 of Pod, related nothing: 100% lost"}
	if diff := cmp.Diff(want, recorder.all()); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], "get on pods and replicasets") {
		t.Errorf("got notices %q, want one that says what is missing", notices)
	}
}

// TestEventsOfASlowServer are lost beyond a bound: nothing that samples waits for them.
func TestEventsOfASlowServer(t *testing.T) {
	t.Parallel()
	s := testSampler(t, Options{})
	s.guard.events.Store(&eventSink{queue: make(chan podEvent, 2)})
	for range 4 {
		s.guard.emit(&Finding{Fingerprint: strings.Repeat("f", 200), Reason: strings.Repeat("ü", 2000)}, "LeakFound")
	}
	if n := s.guard.notices; len(n) != 1 || !strings.Contains(n[0], "Events were lost") {
		t.Errorf("got notices %q, want one about lost Events", n)
	}
	if e := <-s.guard.events.Load().queue; len(e.note) > maxNote || len(e.action) > maxAction || !strings.HasSuffix(e.note, "ü...") {
		t.Errorf("got a note of %d bytes and an action of %d", len(e.note), len(e.action))
	}
}
