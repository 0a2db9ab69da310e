package envsuite

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/leakguard/leakguard/leakguard/leaktest"
	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// leak is one kind of leak: what a reconciler does that leaks, or with fixed set the same without the leak.
type leak struct {
	row string
	do  func(ctx context.Context, e *env, name string, fixed bool) error
}

// never is a channel that nobody sends on or closes, at package level.
var never = make(chan int)

func leaks() []leak {
	return []leak{
		{"S1-02", func(_ context.Context, e *env, _ string, fixed bool) error {
			events := make(chan int)
			go func() {
				select {
				case <-events:
				case <-stopIf(fixed, e):
				}
			}()
			return nil
		}},
		{"S1-03a", func(ctx context.Context, e *env, _ string, fixed bool) error {
			_, err := openWatch(e.config, "empty", fixed, nil)
			return err
		}},
		{"S1-03b", func(ctx context.Context, e *env, _ string, fixed bool) error {
			_, err := openWatch(e.config, e.namespace, fixed, nil)
			return err
		}},
		{"S1-03c", func(_ context.Context, e *env, _ string, fixed bool) error {
			w, err := openWatch(e.config, "empty", fixed, nil)
			if err != nil {
				return err
			}
			go func() {
				for range w.ResultChan() { //nolint:revive // that is the leak
				}
			}()
			return nil
		}},
		{"S1-03d", func(_ context.Context, e *env, _ string, fixed bool) error {
			c := rest.CopyConfig(e.config)
			c.NextProtos = []string{"http/1.1"}
			_, err := openWatch(c, "empty", fixed, nil)
			return err
		}},
		{"S1-03e", func(_ context.Context, e *env, _ string, fixed bool) error {
			_, err := openWatch(e.config, e.namespace, fixed, new(int64(1)))
			return err
		}},
		{"S1-04", func(_ context.Context, e *env, _ string, fixed bool) error {
			c, err := kubernetes.NewForConfig(e.config)
			if err != nil {
				return err
			}
			factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(e.namespace))
			factory.Core().V1().Secrets().Informer()
			factory.Start(stopIf(fixed, e))
			return nil
		}},
		{"S1-05", func(_ context.Context, e *env, _ string, fixed bool) error {
			ctx := context.Background()
			if fixed {
				ctx = until(e)
			}
			go func() { _ = get(ctx, "/hang", true) }()
			return nil
		}},
		{"S1-05b", func(ctx context.Context, _ *env, _ string, fixed bool) error {
			return get(context.Background(), "/", fixed)
		}},
		{"S1-07", func(_ context.Context, _ *env, _ string, fixed bool) error {
			result := make(chan int, bufferIf(fixed))
			go func() { result <- 1 }()
			return nil
		}},
		{"S1-07g", func(_ context.Context, e *env, _ string, fixed bool) error {
			go func() {
				select {
				case never <- 1:
				case <-stopIf(fixed, e):
				}
			}()
			return nil
		}},
		{"S1-10", func(_ context.Context, e *env, _ string, fixed bool) error {
			go func() {
				if fixed {
					<-e.stop
					return
				}
				select {}
			}()
			return nil
		}},
		{"S1-13", func(_ context.Context, e *env, _ string, fixed bool) error {
			queue := make(chan int, 1)
			go func() {
				for i := range 2 + bufferIf(fixed) {
					select {
					case queue <- i:
					case <-stopIf(fixed, e):
					}
				}
			}()
			return nil
		}},
		{"S1-14b", func(_ context.Context, e *env, _ string, fixed bool) error {
			ticker := time.NewTicker(20 * time.Millisecond)
			go func() {
				for {
					select {
					case <-ticker.C:
					case <-stopIf(fixed, e):
						return
					}
				}
			}()
			return nil
		}},
		{"S1-14c", func(_ context.Context, e *env, _ string, fixed bool) error {
			ticker := time.NewTicker(20 * time.Millisecond)
			go func() {
				for {
					select {
					case <-ticker.C:
					case <-stopIf(fixed, e):
						return
					}
				}
			}()
			ticker.Stop()
			return nil
		}},
		{"S1-14e", func(_ context.Context, e *env, _ string, fixed bool) error {
			timer := time.NewTimer(time.Hour)
			timer.Stop()
			go func() {
				select {
				case <-timer.C:
				case <-stopIf(fixed, e):
				}
			}()
			return nil
		}},
		{"S2-02", func(_ context.Context, e *env, _ string, fixed bool) error {
			for range 3 {
				go worker(stopIf(fixed, e))
			}
			return nil
		}},
		{"S2-09", func(_ context.Context, e *env, _ string, fixed bool) error {
			c, err := kubernetes.NewForConfig(e.config)
			if err != nil {
				return err
			}
			lw := toolscache.NewListWatchFromClient(c.CoreV1().RESTClient(), "secrets", e.namespace, fields.Everything())
			r := toolscache.NewReflector(lw, &corev1.Secret{}, toolscache.NewStore(toolscache.MetaNamespaceKeyFunc), 0)
			go r.Run(stopIf(fixed, e))
			return nil
		}},
		{"S2-11h", func(_ context.Context, e *env, _ string, fixed bool) error {
			ctx, cancel := context.WithCancel(context.Background())
			go func() { <-ctx.Done() }()
			if fixed {
				cancel()
			}
			never := cancel // kept, not called
			_ = never
			return nil
		}},
		{"S2-13c", func(ctx context.Context, e *env, _ string, fixed bool) error {
			c := rest.CopyConfig(e.config)
			if !fixed {
				c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // no proxy
			}
			set, err := kubernetes.NewForConfig(c)
			if err != nil {
				return err
			}
			_, err = set.CoreV1().Secrets(e.namespace).List(ctx, metav1.ListOptions{})
			return err
		}},
		{"S2-16", func(_ context.Context, e *env, _ string, fixed bool) error {
			c, err := kubernetes.NewForConfig(e.config)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			w, err := c.CoreV1().ConfigMaps(e.namespace).Watch(ctx, metav1.ListOptions{})
			if err == nil && fixed {
				w.Stop()
			}
			return err
		}},
		{"X-1", func(_ context.Context, _ *env, _ string, fixed bool) error {
			b := record.NewBroadcaster()
			b.StartLogging(func(string, ...any) {})
			if fixed {
				b.Shutdown()
			}
			return nil
		}},
		{"X-2", func(_ context.Context, _ *env, _ string, fixed bool) error {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
			if fixed {
				q.ShutDown()
			}
			return nil
		}},
		{"X-5", func(_ context.Context, e *env, _ string, fixed bool) error {
			c, err := cache.New(e.config, cache.Options{DefaultNamespaces: map[string]cache.Config{e.namespace: {}}})
			if err != nil {
				return err
			}
			ctx := context.Background()
			if fixed {
				ctx = until(e)
			}
			if _, err := c.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false)); err != nil {
				return err
			}
			go func() { _ = c.Start(ctx) }()
			c.WaitForCacheSync(ctx) // controller-runtime v0.25 keeps a goroutine for a cache that stops before it has synced
			return nil
		}},
	}
}

func bufferIf(fixed bool) int {
	if fixed {
		return 1
	}
	return 0
}

// stopIf gives the channel that closes with the operator, or with the leak one that never does.
func stopIf(fixed bool, e *env) <-chan struct{} {
	if fixed {
		return e.stop
	}
	return make(chan struct{})
}

// until gives a context that ends with the operator.
func until(e *env) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-e.stop
		cancel()
	}()
	return ctx
}

func worker(stop <-chan struct{}) { <-stop }

func openWatch(c *rest.Config, namespace string, stop bool, timeout *int64) (watch.Interface, error) {
	set, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	w, err := set.CoreV1().ConfigMaps(namespace).Watch(context.Background(), metav1.ListOptions{TimeoutSeconds: timeout})
	if err == nil && stop {
		w.Stop()
	}
	return w, err
}

func get(ctx context.Context, path string, read bool) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, external+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	if read {
		_, _ = io.Copy(io.Discard, response.Body)
		return response.Body.Close()
	}
	return nil
}

// TestLeak has one test for each kind of leak; all of them fail, each for its own.
func TestLeak(t *testing.T) {
	for _, l := range leaks() {
		t.Run(l.row, func(t *testing.T) {
			leaktest.VerifyNone(t, leaktest.Settle(700*time.Millisecond))
			operate(t, func(ctx context.Context, e *env, name string) error { return l.do(ctx, e, name, false) }, nil)
		})
	}
	t.Run("S2-01", func(t *testing.T) { podCache(t, false) })
	t.Run("S2-07a", func(t *testing.T) { handlers(t, false) })
	t.Run("S2-07c", func(t *testing.T) { slowHandler(t, false) })
}

// TestTwin is the same without the leaks; none of them fails.
func TestTwin(t *testing.T) {
	for _, l := range leaks() {
		t.Run(l.row, func(t *testing.T) {
			leaktest.VerifyNone(t)
			operate(t, func(ctx context.Context, e *env, name string) error { return l.do(ctx, e, name, true) }, nil)
		})
	}
	t.Run("S2-01", func(t *testing.T) { podCache(t, true) })
	t.Run("S2-07a", func(t *testing.T) { handlers(t, true) })
	t.Run("S2-07c", func(t *testing.T) { slowHandler(t, true) })
}

// podCache keeps each object in a map of the package.
func podCache(t *testing.T, fixed bool) {
	t.Helper()
	leaktest.VerifyNone(t)
	var mu sync.Mutex
	kept := map[string]*corev1.ConfigMap{}
	leaktest.VerifyResources(t, []probes.Probe{leaktest.Counter("pod_cache", func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(kept)
	})}, leaktest.Settle(0))
	operate(t, func(_ context.Context, _ *env, name string) error {
		mu.Lock()
		defer mu.Unlock()
		kept[name] = &corev1.ConfigMap{}
		if fixed {
			delete(kept, name)
		}
		return nil
	}, nil)
}

// handlers adds an event handler in each reconcile. It ends with the manager, so what counts is read before that.
func handlers(t *testing.T, fixed bool) {
	t.Helper()
	leaktest.VerifyNone(t)
	account := clientgo.NewInformers(clientgo.InformersOptions{})
	begin := make(chan struct{})
	var work sync.WaitGroup
	work.Add(objects)
	operate(t, func(ctx context.Context, e *env, _ string) error {
		go func() {
			defer work.Done()
			<-begin
			i, err := e.cache.GetInformer(ctx, &corev1.ConfigMap{})
			if err != nil {
				t.Error(err)
				return
			}
			registration, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{})
			// controller-runtime v0.25 keeps a goroutine for a handler that is removed before it has synced.
			if err == nil && toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) && fixed {
				err = i.RemoveEventHandler(registration)
			}
			if err != nil {
				t.Error(err)
			}
		}()
		return nil
	}, account)
	leaktest.VerifyResources(t, []probes.Probe{account}, leaktest.Settle(200*time.Millisecond))
	close(begin)
	work.Wait()
}

// slowHandler blocks in an event handler, behind which notifications pile up.
func slowHandler(t *testing.T, fixed bool) {
	t.Helper()
	leaktest.VerifyNone(t, leaktest.Settle(700*time.Millisecond))
	blocked := make(chan struct{})
	var once sync.Once
	operate(t, func(ctx context.Context, e *env, _ string) (err error) {
		once.Do(func() {
			var i cache.Informer
			if i, err = e.cache.GetInformer(ctx, &corev1.ConfigMap{}); err != nil {
				return
			}
			_, err = i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				if !fixed {
					<-blocked
				}
			}})
		})
		return err
	}, nil)
}
