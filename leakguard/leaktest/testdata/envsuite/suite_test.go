// Package envsuite is the test suite of an operator as its authors write them: each test starts a manager against an API
// server and stops it again. The server is the one in memory, so that it runs anywhere, or with ENVSUITE_KUBECONFIG any other.
package envsuite

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/examples/operator/miniapi"
	"github.com/leakguard/leakguard/leakguard/leaktest"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// apiServer is the configuration of the server, and external the address of a service outside the cluster.
var (
	apiServer *rest.Config
	external  string
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	dir, err := os.MkdirTemp("", "envsuite")
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if file := os.Getenv("ENVSUITE_KUBECONFIG"); file != "" {
		if apiServer, err = clientcmd.BuildConfigFromFlags("", file); err != nil {
			panic(err)
		}
	} else {
		apiServer = inMemory(ctx, dir)
	}
	web := httptest.NewServer(http.HandlerFunc(serve))
	external = web.URL
	leaktest.VerifyTestMain(m, leaktest.WhileSettling(func() {
		cancel()
		web.CloseClientConnections()
		go web.Close()
		_ = os.RemoveAll(dir)
	}))
}

// inMemory starts the server in memory until ctx ends.
func inMemory(ctx context.Context, dir string) *rest.Config {
	ready := make(chan *rest.Config)
	go func() {
		if err := miniapi.Serve(ctx, dir, func(id miniapi.Identity) { ready <- id.RESTConfig() }, miniapi.Builtins()...); err != nil {
			panic(err)
		}
	}()
	return <-ready
}

// serve answers /hang never and everything else with a large body.
func serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/hang" {
		<-r.Context().Done()
		return
	}
	_, _ = io.Copy(w, strings.NewReader(strings.Repeat("x", 1<<20)))
}

// env is what a reconciler works with.
type env struct {
	config    *rest.Config
	cache     cache.Cache
	client    client.Client
	namespace string
	stop      <-chan struct{} // closed when the operator stops
}

// work is what a reconciler does.
type work func(ctx context.Context, e *env, name string) error

// objects is how many objects each test makes, and so how many reconciles do its work.
const objects = 3

// operate starts a manager with one controller, lets it reconcile some objects, and has it stopped at the end of the test.
func operate(t *testing.T, do work, informers *clientgo.Informers) *env {
	t.Helper()
	e := &env{config: rest.CopyConfig(apiServer), namespace: strings.ToLower(strings.NewReplacer("/", "-", "_", "-", "#", "-").Replace(t.Name()))}
	options := ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{e.namespace: {}}}, GracefulShutdownTimeout: new(time.Second),
	}
	if informers != nil {
		options.Cache.NewInformer = informers.NewInformer(nil)
	}
	mgr, err := ctrl.NewManager(e.config, options)
	if err != nil {
		t.Fatal(err)
	}
	e.cache, e.client = mgr.GetCache(), mgr.GetClient()
	seen := newSet()
	reconciler := reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		if !seen.add(r.Name) {
			return reconcile.Result{}, nil
		}
		defer seen.done(r.Name)
		return reconcile.Result{}, do(ctx, e, r.Name)
	})
	err = builder.ControllerManagedBy(mgr).Named("app").For(&corev1.ConfigMap{}).WithOptions(controller.Options{MaxConcurrentReconciles: 2}).Complete(reconciler)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = ctx.Done()
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil && !strings.Contains(err.Error(), "grace period") {
			t.Error(err)
		}
	})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}
	if err := client.IgnoreAlreadyExists(e.client.Create(t.Context(), namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range objects {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: fmt.Sprintf("app-%d", i)}}
		if err := e.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	seen.wait(objects)
	return e
}

// set remembers names, and counts those that are done.
type set struct {
	mu       sync.Mutex
	names    map[string]bool
	finished chan string
}

func newSet() *set { return &set{names: map[string]bool{}, finished: make(chan string, objects)} }

func (s *set) add(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.names[name]
	s.names[name] = true
	return !was
}

func (s *set) done(name string) { s.finished <- name }

func (s *set) wait(n int) {
	for range n {
		<-s.finished
	}
}

// nothing is the work of a reconciler that only reads its object.
func nothing(ctx context.Context, e *env, name string) error {
	var o corev1.ConfigMap
	return e.client.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: name}, &o)
}

// lists has the cache start an informer in the middle of a reconcile.
func lists(ctx context.Context, e *env, _ string) error {
	var list corev1.SecretList
	return e.client.List(ctx, &list, client.InNamespace(e.namespace))
}

func TestQuiet(t *testing.T) {
	leaktest.VerifyNone(t)
	operate(t, nothing, nil)
}

func TestQuietAgain(t *testing.T) {
	leaktest.VerifyNone(t)
	operate(t, nothing, nil)
}

func TestQuietLazyInformer(t *testing.T) {
	leaktest.VerifyNone(t)
	operate(t, lists, nil)
}

func TestQuietParallel(t *testing.T) {
	for _, name := range []string{"a", "b", "c"} {
		t.Run(name, func(t *testing.T) {
			leaktest.VerifyNone(t)
			t.Parallel()
			operate(t, lists, nil)
		})
	}
}
