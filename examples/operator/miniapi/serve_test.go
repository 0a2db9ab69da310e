package miniapi_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leakguard/leakguard/examples/operator/miniapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// widget is a custom resource for the tests.
func widget() miniapi.Resource {
	return miniapi.Resource{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true, Status: true, Custom: true}
}

// server is a running server.
type server struct {
	miniapi.Identity
	stop func()
}

// serve runs a server on a folder until the test ends or it is stopped.
func serve(t *testing.T, dir string) server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan miniapi.Identity, 1), make(chan error, 1)
	go func() {
		done <- miniapi.Serve(ctx, dir, func(id miniapi.Identity) { ready <- id }, append(miniapi.Builtins(), widget())...)
	}()
	select {
	case id := <-ready:
		stopped := false
		s := server{Identity: id, stop: func() {
			if stopped {
				return
			}
			stopped = true
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Serve: %v", err)
			}
		}}
		t.Cleanup(s.stop)
		return s
	case err := <-done:
		cancel()
		t.Fatalf("Serve: %v", err)
	}
	panic("unreachable")
}

// connect gives a client whose connections end with the test.
func connect(t *testing.T, id miniapi.Identity) client.WithWatch {
	t.Helper()
	cfg := id.RESTConfig()
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	c, err := client.NewWithWatch(cfg, client.Options{HTTPClient: h, Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newWidget(name string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	w.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	w.SetNamespace("default")
	w.SetName(name)
	return w
}

func widgets() *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "WidgetList"})
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// next gives the next event of a watch; a watch that says nothing fails the test.
func next(t *testing.T, w watch.Interface) (watch.EventType, *unstructured.Unstructured) {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		o, _ := e.Object.(*unstructured.Unstructured)
		return e.Type, o
	case <-time.After(10 * time.Second): // only reached when the test fails
		t.Fatal("no event")
	}
	panic("unreachable")
}

func TestIdentityAndObjectsSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := serve(t, dir)
	c := connect(t, first.Identity)
	object := newWidget("kept")
	must(t, c.Create(t.Context(), object))
	gone := newWidget("gone")
	must(t, c.Create(t.Context(), gone))
	must(t, c.Delete(t.Context(), gone))
	first.stop()

	// A kill in the middle of a write leaves a line without an end.
	f, err := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"type":"ADDED","resource":"example.com/v1/wid`)
	must(t, err)
	must(t, f.Close())

	second := serve(t, dir)
	if second.Address != first.Address || second.Token != first.Token || !bytes.Equal(second.Certificate, first.Certificate) {
		t.Errorf("got another identity %s, want %s", second.Address, first.Address)
	}
	list := widgets()
	must(t, c.List(t.Context(), list))
	if len(list.Items) != 1 || list.Items[0].GetName() != "kept" || list.Items[0].GetResourceVersion() != object.GetResourceVersion() {
		t.Errorf("got %v, want the one object as it was", list.Items)
	}
	// A watch goes on where it broke off: it hears of what happened before the restart.
	w, err := c.Watch(t.Context(), widgets(), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: object.GetResourceVersion()}})
	must(t, err)
	defer w.Stop()
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		if got, o := next(t, w); got != want || o.GetName() != "gone" {
			t.Errorf("got %s of %s, want %s of gone", got, o.GetName(), want)
		}
	}
	later := newWidget("later")
	must(t, c.Create(t.Context(), later))
	if got, o := next(t, w); got != watch.Added || o.GetName() != "later" {
		t.Errorf("got %s of %s, want ADDED of later", got, o.GetName())
	}
}

func TestRequestsNeedTheToken(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for _, token := range []string{"", "wrong"} {
		cfg := s.RESTConfig()
		cfg.BearerToken = token
		h, err := rest.HTTPClientFor(cfg)
		must(t, err)
		defer h.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Host+"/api/v1/configmaps", http.NoBody)
		must(t, err)
		response, err := h.Do(request)
		must(t, err)
		must(t, response.Body.Close())
		if response.StatusCode != http.StatusUnauthorized || response.ProtoMajor != 2 {
			t.Errorf("token %q: got %d over HTTP/%d, want 401 over HTTP/2", token, response.StatusCode, response.ProtoMajor)
		}
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	h, err := rest.HTTPClientFor(s.RESTConfig())
	must(t, err)
	defer h.CloseIdleConnections()
	d, err := discovery.NewDiscoveryClientForConfigAndClient(s.RESTConfig(), h)
	must(t, err)
	_, lists, err := d.ServerGroupsAndResources()
	must(t, err)
	got := map[string]bool{}
	for _, l := range lists {
		for _, r := range l.APIResources {
			got[l.GroupVersion+"/"+r.Name] = true
		}
	}
	for _, want := range []string{
		"v1/configmaps", "v1/namespaces", "v1/namespaces/status", "coordination.k8s.io/v1/leases", "events.k8s.io/v1/events",
		"example.com/v1/widgets", "example.com/v1/widgets/status",
	} {
		if !got[want] {
			t.Errorf("discovery lacks %s: %v", want, got)
		}
	}
	must(t, connect(t, s.Identity).Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}))
}

func TestTwoServersOnOneFolderClash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir)
	err := miniapi.Serve(t.Context(), dir, func(miniapi.Identity) { t.Error("the second server answers") })
	if err == nil {
		t.Error("got no error, want that the address is in use")
	}
}
