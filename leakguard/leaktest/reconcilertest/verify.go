package reconcilertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/leakguard/leaktest"
	"github.com/leakguard/leakguard/probes"
)

// Defaults of the options.
const (
	// DefaultRounds is how often each request is reconciled at first, see [Rounds].
	DefaultRounds = 20
	// DefaultTimeout is how long one call of Reconcile may take, also after its context was cancelled.
	DefaultTimeout = 10 * time.Second
)

// ErrOption is wrapped by the error of each option that cannot be used.
var ErrOption = errors.New("reconcilertest: bad option")

// Option changes [Verify].
type Option func(c *config) error

type config struct {
	rounds   int
	timeout  time.Duration
	checks   []leaktest.Option
	probes   []probes.Probe
	client   client.Client
	object   func(i int) client.Object
	errorsOK bool
}

// Rounds sets how often the requests are reconciled in the first round of the memory check; the default is [DefaultRounds].
// See leaktest.Iterations for how many it becomes.
func Rounds(n int) Option {
	return func(c *config) error {
		if n < 1 {
			return fmt.Errorf("%w: Rounds(%d) is less than 1", ErrOption, n)
		}
		c.rounds = n
		return nil
	}
}

// Timeout sets how long one call of Reconcile may take; the default is [DefaultTimeout].
func Timeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("%w: Timeout(%s) is not positive", ErrOption, d)
		}
		c.timeout = d
		return nil
	}
}

// Checks hands options to the checks: what to ignore, how long to settle, what memory may stay.
func Checks(opts ...leaktest.Option) Option {
	return func(c *config) error {
		c.checks = append(c.checks, opts...)
		return nil
	}
}

// Probes has probes read before and after all rounds: of the transport that the client uses, of caches, of queues.
func Probes(list ...probes.Probe) Option {
	return func(c *config) error {
		c.probes = append(c.probes, list...)
		return nil
	}
}

// Objects adds rounds in which an object is created, reconciled, updated, reconciled, deleted and reconciled again, with a
// client that the reconciler sees the objects through. newObject gives a new object each time, with a name of its own for each i.
func Objects(c client.Client, newObject func(i int) client.Object) Option {
	return func(o *config) error {
		if c == nil || newObject == nil {
			return fmt.Errorf("%w: Objects needs a client and a function", ErrOption)
		}
		o.client, o.object = c, newObject
		return nil
	}
}

// AllowErrors lets Reconcile return errors in all rounds. By default only the rounds with a cancelled context may.
func AllowErrors() Option {
	return func(c *config) error {
		c.errorsOK = true
		return nil
	}
}

// Verify runs a reconciler for the requests again and again, and fails the test when that leaves goroutines, memory or,
// with [Probes], resources behind. It checks, each as a failure of its own:
//
//   - that a call with a cancelled context returns within [Timeout] and leaves nothing;
//   - that no goroutine is left after calls for each request and, with [Objects], of objects that come, change and go;
//   - that the counts of the probes come back;
//   - that the live heap does not grow with the number of calls.
//
// Requests may be empty with Objects. Where the reconciler keeps state for each object the memory check needs a fixed set of
// requests to tell that from a leak, so objects that come and go get fresh names: what is kept of them grows, and is a leak.
func Verify(t leaktest.TB, r reconcile.Reconciler, requests []reconcile.Request, opts ...Option) {
	t.Helper()
	VerifyTyped(t, r, requests, opts...)
}

// VerifyTyped is [Verify] for reconcilers of other requests. With [Objects] the requests must be reconcile.Request.
func VerifyTyped[R comparable](t leaktest.TB, r reconcile.TypedReconciler[R], requests []R, opts ...Option) {
	t.Helper()
	c := &config{rounds: DefaultRounds, timeout: DefaultTimeout}
	for _, o := range opts {
		if err := o(c); err != nil {
			t.Errorf("%v", err)
			return
		}
	}
	v := &verifier[R]{t: t, config: c, reconciler: r, requests: requests}
	if err := v.check(); err != nil {
		t.Errorf("%v", err)
		return
	}
	v.run()
}

// verifier is one run.
type verifier[R comparable] struct {
	t          leaktest.TB
	config     *config
	reconciler reconcile.TypedReconciler[R]
	requests   []R
	object     int         // the number of the next one
	failed     atomic.Bool // said already: further rounds would say it again
}

// check refuses a run that would check nothing.
func (v *verifier[R]) check() error {
	if any(v.reconciler) == nil {
		return fmt.Errorf("%w: there is no reconciler", ErrOption)
	}
	if len(v.requests) == 0 && v.config.object == nil {
		return fmt.Errorf("%w: neither requests nor Objects are given, it would check nothing", ErrOption)
	}
	if _, ok := v.requestOf("", "").(R); v.config.object != nil && !ok {
		return fmt.Errorf("%w: Objects is for reconcilers of reconcile.Request", ErrOption)
	}
	return nil
}

func (*verifier[R]) requestOf(namespace, name string) any {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// run makes all the checks.
func (v *verifier[R]) run() {
	v.t.Helper()
	finish := v.watchResources()
	defer finish()
	leaktest.Check(v.t, v.cancelledRound, v.config.checks...)
	leaktest.Check(v.t, func(ctx context.Context) { v.round(ctx) }, v.config.checks...)
	if v.failed.Load() {
		return
	}
	heap := append([]leaktest.Option{leaktest.Iterations(v.config.rounds)}, v.config.checks...)
	leaktest.VerifyHeap(v.t, func(int) {
		if !v.failed.Load() {
			v.round(context.Background())
		}
	}, heap...)
}

// watchResources begins the check of the probes and gives the function that ends it.
func (v *verifier[R]) watchResources() (finish func()) {
	v.t.Helper()
	if len(v.config.probes) == 0 {
		return func() {}
	}
	inner := &cleanups{TB: v.t}
	leaktest.VerifyResources(inner, v.config.probes, v.config.checks...)
	return inner.run
}

// cleanups is a test whose cleanups run when Verify is done.
type cleanups struct {
	leaktest.TB

	list []func()
}

// Cleanup implements leaktest.TB.
func (c *cleanups) Cleanup(f func()) { c.list = append(c.list, f) }

func (c *cleanups) run() {
	for _, f := range slices.Backward(c.list) {
		f()
	}
}

// cancelledRound reconciles with a context that has ended.
func (v *verifier[R]) cancelledRound(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	for _, request := range v.requests {
		v.reconcile(ctx, request, true)
	}
	if v.config.object != nil {
		o := v.newObject()
		if request, ok := v.requestOf(o.GetNamespace(), o.GetName()).(R); ok {
			v.reconcile(ctx, request, true)
		}
	}
}

// round reconciles each request, and an object that comes and goes.
func (v *verifier[R]) round(ctx context.Context) {
	for _, request := range v.requests {
		v.reconcile(ctx, request, v.config.errorsOK)
	}
	if v.config.object != nil {
		if err := v.lifeOf(ctx, v.newObject()); err != nil {
			v.fail("%v", err)
		}
	}
}

func (v *verifier[R]) newObject() client.Object {
	o := v.config.object(v.object)
	v.object++
	return o
}

// lifeOf creates, updates and deletes an object and reconciles it after each.
func (v *verifier[R]) lifeOf(ctx context.Context, o client.Object) error {
	request, ok := v.requestOf(o.GetNamespace(), o.GetName()).(R)
	if !ok {
		return nil // check has refused it
	}
	key := client.ObjectKeyFromObject(o)
	if err := v.config.client.Create(ctx, o); err != nil {
		return fmt.Errorf("reconcilertest: creating %s: %w", key, err)
	}
	v.reconcile(ctx, request, v.config.errorsOK)
	if err := v.config.client.Get(ctx, key, o); err != nil {
		return fmt.Errorf("reconcilertest: reading %s: %w", key, err)
	}
	before := client.MergeFrom(o.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy has the type of its original
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["leakguard.dev/round"] = "updated"
	o.SetAnnotations(annotations)
	if err := v.config.client.Patch(ctx, o, before); err != nil {
		return fmt.Errorf("reconcilertest: updating %s: %w", key, err)
	}
	v.reconcile(ctx, request, v.config.errorsOK)
	if err := v.config.client.Delete(ctx, o); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reconcilertest: deleting %s: %w", key, err)
	}
	v.reconcile(ctx, request, v.config.errorsOK)
	return nil
}

// reconcile calls the reconciler once and waits for it, at most the timeout.
func (v *verifier[R]) reconcile(ctx context.Context, request R, errorOK bool) {
	v.t.Helper()
	if v.failed.Load() {
		return
	}
	returned := make(chan error, 1)
	go func() {
		_, err := v.reconciler.Reconcile(ctx, request)
		returned <- err
	}()
	timer := time.NewTimer(v.config.timeout)
	defer timer.Stop()
	select {
	case err := <-returned:
		if err != nil && !errorOK {
			v.fail("reconcilertest: Reconcile(%v): %v", request, err)
		}
	case <-timer.C:
		state := ""
		if ctx.Err() != nil {
			state = " although its context is cancelled"
		}
		v.fail("reconcilertest: Reconcile(%v) has not returned after %s%s", request, v.config.timeout, state)
	}
}

// fail reports the first failure of a kind that every further round would repeat.
func (v *verifier[R]) fail(format string, args ...any) {
	v.t.Helper()
	if v.failed.CompareAndSwap(false, true) {
		v.t.Errorf(format, args...)
	}
}
