package leakguard_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/leakguard"
)

// handlersWork is what the goroutines of an event handler do.
func handlersWork(release <-chan struct{}) { <-release }

// addHandler adds a handler that starts a goroutine for each object.
func addHandler(ctx context.Context, c cache.Cache, release <-chan struct{}) error {
	informer, err := c.GetInformer(ctx, &corev1.ConfigMap{})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { go handlersWork(release) }})
	return err
}

// TestManagerScopesEventHandlers adds a handler outside of any reconcile, and one inside: what their goroutines are called
// after is what is known.
func TestManagerScopesEventHandlers(t *testing.T) {
	for _, test := range []struct {
		name        string
		inReconcile bool
		want        string
	}{
		{"outside", false, `"leakguard_controller":"handlers of v1.ConfigMap informer"`},
		{"in a reconcile", true, `"leakguard_controller":"adds-handlers"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := apiServer(t)
			opts, _ := options(t)
			mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: scale})
			if err != nil {
				t.Fatal(err)
			}
			release := make(chan struct{})
			var once sync.Once
			reconciler := reconcile.Func(func(ctx context.Context, _ reconcile.Request) (_ reconcile.Result, err error) {
				if test.inReconcile {
					once.Do(func() { err = addHandler(ctx, mgr.GetCache(), release) })
				}
				return reconcile.Result{}, err
			})
			if err := ctrl.NewControllerManagedBy(mgr).Named("adds-handlers").For(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
				t.Fatal(err)
			}
			createMaps(t, cfg, 3)
			stop := run(t, mgr)
			if !test.inReconcile {
				if err := addHandler(t.Context(), mgr.GetCache(), release); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "the handler's goroutines carry "+test.want, func() bool { return labelsOf(t, ".handlersWork+", test.want) })
			for _, c := range mgr.Guard().Report().Controllers {
				if strings.HasPrefix(c.Name, "handlers of ") {
					t.Errorf("%q is listed as a controller", c.Name)
				}
			}
			close(release)
			stop()
		})
	}
}

// labelsOf reports whether a goroutine with a function on its stack carries a label, by the text form of the profile.
func labelsOf(t *testing.T, function, label string) bool {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	for group := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(group, function) && strings.Contains(group, label) {
			return true
		}
	}
	return false
}

// contextless opens watches with a context that says nothing of its reconcile.
type contextless struct {
	client *http.Client
	url    string

	mu     sync.Mutex
	bodies []io.Closer
}

// Reconcile implements reconcile.Reconciler.
func (f *contextless) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, f.url, http.NoBody) //nolint:contextcheck // of no reconcile on purpose
	if err != nil {
		return reconcile.Result{}, err
	}
	resp, err := f.client.Do(r) //nolint:bodyclose // left open on purpose, until the test ends
	if err != nil {
		return reconcile.Result{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bodies = append(f.bodies, resp.Body)
	return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, nil
}

func (f *contextless) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.bodies {
		_ = b.Close()
	}
	f.bodies = nil
}

// TestManagerKnowsWhoWatchesWithoutAContext finds the controller by its reconciler's method.
func TestManagerKnowsWhoWatchesWithoutAContext(t *testing.T) {
	cfg := apiServer(t)
	opts, _ := options(t)
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: scale})
	if err != nil {
		t.Fatal(err)
	}
	f := &contextless{client: mgr.GetHTTPClient(), url: cfg.Host + "/api/v1/namespaces/default/configmaps?watch=true"}
	if err := ctrl.NewControllerManagedBy(mgr).Named("contextless").For(&corev1.ConfigMap{}).Complete(f); err != nil {
		t.Fatal(err)
	}
	createMaps(t, cfg, 2)
	stop := run(t, mgr)
	t.Cleanup(f.close)
	eventually(t, "the watches fire with their controller", func() bool {
		for _, x := range mgr.Guard().Report().Findings {
			if x.State == leakguard.StateFiring && x.Rule == "accounting" && x.Controller == "contextless" && strings.HasSuffix(x.Culprit.Function, "(*contextless).Reconcile") {
				return true
			}
		}
		return false
	})
	stop()
	f.close()
}
