package reconcilertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/leakguard/leaktest"
	"github.com/leakguard/leakguard/leakguard/leaktest/reconcilertest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// fake is a test whose failures are looked at.
type fake struct{ failures []string }

func (*fake) Helper()        {}
func (*fake) Name() string   { return "TestInner" }
func (*fake) Cleanup(func()) {}
func (f *fake) Errorf(format string, args ...any) {
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

// scheme knows config maps only: the fake client is fast with few types.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ConfigMap{}, &corev1.ConfigMapList{})
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	return s
}

func configMap(i int) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("app-%d", i)}}
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: name}}
}

// reconciler reads its object and does what a test asks for.
type reconciler struct {
	client client.Client
	do     func(ctx context.Context, r reconcile.Request) error
}

func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var o corev1.ConfigMap
	if err := r.client.Get(ctx, req.NamespacedName, &o); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if r.do == nil {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.do(ctx, req)
}

func TestVerify(t *testing.T) {
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	kept := map[string][]byte{}
	var open atomic.Int64
	tests := []struct {
		name string
		do   func(ctx context.Context, r reconcile.Request) error
		opts []reconcilertest.Option
		want []string // one failure each
	}{
		{name: "clean"},
		{name: "a goroutine that is waited for", do: func(context.Context, reconcile.Request) error {
			done := make(chan struct{})
			go close(done)
			<-done
			return nil
		}},
		{name: "one entry for each live object", do: func(_ context.Context, r reconcile.Request) error {
			kept[r.Namespace] = make([]byte, 64)
			return nil
		}},
		{name: "goroutine", do: func(context.Context, reconcile.Request) error {
			go func() { <-stop }()
			return nil
		}, want: []string{"TestInner/Check left 2 goroutines", "TestInner/Check left 4 goroutines", "grows with every iteration"}},
		{name: "goroutine only when cancelled", do: func(ctx context.Context, _ reconcile.Request) error {
			if ctx.Err() != nil {
				go func() { <-stop }()
			}
			return ctx.Err()
		}, want: []string{"TestInner/Check left 2 goroutines"}},
		{name: "memory", do: func(_ context.Context, r reconcile.Request) error {
			kept[r.Name] = make([]byte, 1024)
			return nil
		}, want: []string{"the live heap grows with every iteration"}},
		{name: "resource", do: func(context.Context, reconcile.Request) error {
			open.Add(1)
			return nil
		}, opts: []reconcilertest.Option{reconcilertest.Probes(leaktest.Counter("open_sessions", func() int { return int(open.Load()) }))}, want: []string{"open sessions, before the test"}},
		{name: "deaf to its context", do: func(context.Context, reconcile.Request) error {
			<-stop
			return nil
		}, opts: []reconcilertest.Option{reconcilertest.Timeout(30 * time.Millisecond)}, want: []string{"has not returned after 30ms although its context is cancelled", "left 1 goroutines"}},
		{name: "error", do: func(context.Context, reconcile.Request) error { return errors.New("on purpose") }, want: []string{"on purpose"}},
		{name: "error that is allowed", do: func(context.Context, reconcile.Request) error { return errors.New("on purpose") }, opts: []reconcilertest.Option{reconcilertest.AllowErrors()}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clear(kept)
			c := clientfake.NewClientBuilder().WithScheme(scheme()).WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fixed"}}).Build()
			f := &fake{}
			opts := append([]reconcilertest.Option{
				reconcilertest.Objects(c, configMap), reconcilertest.Rounds(10),
				reconcilertest.Checks(leaktest.Settle(30*time.Millisecond), leaktest.HeapTime(time.Second)),
			}, tt.opts...)
			reconcilertest.Verify(f, &reconciler{c, tt.do}, []reconcile.Request{request("fixed")}, opts...)
			if len(f.failures) != len(tt.want) {
				t.Fatalf("%d failures, want %d:\n%s", len(f.failures), len(tt.want), strings.Join(f.failures, "\n"))
			}
			for i, w := range tt.want {
				if !strings.Contains(f.failures[i], w) {
					t.Errorf("failure %d does not say %q:\n%s", i, w, f.failures[i])
				}
			}
		})
	}
}

func TestVerifyMisuse(t *testing.T) {
	c := clientfake.NewClientBuilder().WithScheme(scheme()).Build()
	for name, opts := range map[string][]reconcilertest.Option{
		"nothing to do": nil,
		"rounds":        {reconcilertest.Rounds(0)},
		"timeout":       {reconcilertest.Timeout(0)},
		"objects":       {reconcilertest.Objects(nil, configMap)},
	} {
		f := &fake{}
		reconcilertest.Verify(f, &reconciler{client: c}, nil, opts...)
		if len(f.failures) != 1 || !strings.Contains(f.failures[0], reconcilertest.ErrOption.Error()) {
			t.Errorf("%s: got %q, want one failure with %q", name, f.failures, reconcilertest.ErrOption)
		}
	}
	f := &fake{}
	reconcilertest.VerifyTyped(f, reconcile.TypedFunc[int](func(context.Context, int) (reconcile.Result, error) { return reconcile.Result{}, nil }),
		[]int{1, 2}, reconcilertest.Checks(leaktest.HeapTime(time.Second)))
	if len(f.failures) != 0 {
		t.Errorf("a reconciler of numbers fails: %q", f.failures)
	}
}
