package leakguard //nolint:testpackage // the writer is inside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusServer takes the patches of a Pod's status, or gives an error for them.
type statusServer struct {
	client.SubResourceWriter

	mu      sync.Mutex
	err     error
	tried   int
	patches []string
}

func (s *statusServer) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	if s.err != nil {
		return s.err
	}
	data, err := patch.Data(object)
	s.patches = append(s.patches, fmt.Sprintf("%s/%s %s", object.GetNamespace(), object.GetName(), data))
	return err
}

func (s *statusServer) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// got gives how often a patch was tried and those that were taken.
func (s *statusServer) got() (tried int, patches []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried, s.patches
}

// conditionGuard gives a guard whose sink is running; test runs in its bubble.
func conditionGuard(t *testing.T, server *statusServer, test func(g *Guard)) {
	t.Helper()
	t.Setenv("POD_NAME", "operator-0")
	t.Setenv("POD_NAMESPACE", "system")
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Breaker: &Breaker{MaxLeaked: 10}})
		g.breakers.wait("app", time.Now())
		g.breakers.wait("works", time.Now())
		reader := &answers{controllers: map[string]string{"Pod/operator-0": ""}}
		g.events.Store(newEventSink(&sent{}, reader, server, g.addNotice))
		stop := g.events.Load().start(t.Context())
		defer stop()
		test(g)
	})
}

// conditionStep lets the breakers see what app has leaked.
func conditionStep(g *Guard, count int64) {
	s := sampler{guard: g, detector: newDetector(&g.options)}
	s.breakers(time.Now(), leaked(time.Now(), map[string]int64{"app": count}).findings)
	synctest.Wait()
}

// TestConditionOfABusyServer comes when the server answers again, as it is then, and waits longer after each failure.
func TestConditionOfABusyServer(t *testing.T) {
	server := &statusServer{err: errors.New("connection refused")}
	conditionGuard(t, server, func(g *Guard) {
		conditionStep(g, 0)
		conditionStep(g, 20)
		time.Sleep(time.Hour)
		synctest.Wait()
		if tried, _ := server.got(); tried < 10 || tried > 20 {
			t.Errorf("got %d attempts in an hour, want one each five minutes and some at the start", tried)
		}
		server.fail(nil)
		time.Sleep(maxConditionRetry)
		synctest.Wait()
		_, patches := server.got()
		if len(patches) != 1 || !strings.HasPrefix(patches[0], "system/operator-0 ") {
			t.Fatalf("got %q, want one patch", patches)
		}
		var patch struct {
			Metadata struct{ UID string }
			Status   corev1.PodStatus
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(patches[0], "system/operator-0 ")), &patch); err != nil {
			t.Fatal(err)
		}
		if patch.Metadata.UID != "uid of read" || len(patch.Status.Conditions) != 1 {
			t.Fatalf("got %s, want the Pod's UID and one condition", patches[0])
		}
		c := patch.Status.Conditions[0]
		if c.Type != ControllerPaused || c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "controller app is paused until") {
			t.Errorf("got the condition %+v", c)
		}
		if len(g.notices) > 0 {
			t.Errorf("got notices %q, want none", g.notices)
		}
	})
}

// TestConditionWithoutPermission is said once, and tried again with each change only.
func TestConditionWithoutPermission(t *testing.T) {
	server := &statusServer{err: apierrors.NewForbidden(schema.GroupResource{Resource: "pods/status"}, "operator-0", errors.New("no"))}
	conditionGuard(t, server, func(g *Guard) {
		conditionStep(g, 0)
		conditionStep(g, 20)
		for range 10 {
			time.Sleep(10 * time.Second)
			conditionStep(g, 20)
		}
		if tried, _ := server.got(); tried != 2 {
			t.Errorf("got %d attempts, want one for each of two changes", tried)
		}
		if len(g.notices) != 1 || !strings.Contains(g.notices[0], "patch on pods/status") {
			t.Errorf("got notices %q, want one that says what is missing", g.notices)
		}
		if g.breakers.state("app") != breakerOpen {
			t.Error("the controller is not paused")
		}
	})
}
