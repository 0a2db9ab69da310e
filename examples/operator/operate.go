package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/examples/operator/apiserver"
	"github.com/leakguard/leakguard/examples/operator/v1alpha1"
	"github.com/leakguard/leakguard/examples/traps"
	"github.com/leakguard/leakguard/leakguard"
)

// operate runs the operator for its duration, says what leakguard found, and gives an error when that is not what was
// expected. Everything it started has ended when it returns.
func operate(ctx context.Context, c *settings, stdout, stderr io.Writer) (err error) {
	logs := setLog(stderr, c.verbose)
	server, err := apiserver.Start(ctx, c.api, apiserver.Options{
		CRD: v1alpha1.CRD(), RestartAfter: c.restart, Stderr: stderr,
		Log: func(format string, args ...any) { complain(stderr, format, args...) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if err = makeNamespace(ctx, server.Config(), c.namespace); err != nil {
		return err
	}
	o := &operator{settings: c, api: server, stdout: stdout, logs: logs}
	o.mgr, err = newManager(c, server)
	if err != nil {
		return err
	}
	return o.run(ctx)
}

// makeNamespace makes the namespace that the operator works in, unless it is there.
func makeNamespace(ctx context.Context, config *rest.Config, name string) error {
	if name == metav1.NamespaceDefault {
		return nil
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	err = c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("--namespace: %w", err)
	}
	return nil
}

// operator is a run of the operator.
type operator struct {
	*settings
	api    *apiserver.Server
	mgr    *leakguard.Manager
	load   *load
	stdout io.Writer
	logs   *logState
}

// newManager makes a manager with leakguard in it. This one call is all that an operator has to change.
func newManager(c *settings, server *apiserver.Server) (*leakguard.Manager, error) {
	scheme := k8sruntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config := server.Config()
	for _, l := range c.leaks {
		if l.Configure != nil && !l.twin {
			config = rest.CopyConfig(config)
			l.Configure(config)
		}
	}
	return leakguard.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: c.metrics},
		LeaderElection:                c.leaderElect,
		LeaderElectionID:              "leakguard-example",
		LeaderElectionNamespace:       c.namespace,
		LeaderElectionReleaseOnCancel: true, // so that long leases do no harm
		LeaseDuration:                 new(90 * time.Second),
		RenewDeadline:                 new(60 * time.Second), // an API server that restarts must not cost the leader its place
		// More than one operator may live in the process of a test.
		Controller: controllerconfig.Controller{SkipNameValidation: new(true)},
	}, leakguard.Options{Scale: c.scale, Budget: leakguard.Budget{Pause: c.maxPause}})
}

// run adds the controllers and the load, starts everything and waits for the end.
func (o *operator) run(ctx context.Context) error {
	enough, stopLoad := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLoad()
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if err := o.add(life, enough); err != nil {
		return err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- o.mgr.Start(life) }()
	j := newJudge(o)
	o.printHeader()
	err := o.wait(ctx, j, stopped)
	stopLoad()
	j.end(o.mgr.Guard().Report()) // before the stop, which ends the goroutines that were counted
	if err == nil && o.begun() {
		err = o.afterwards(life)
	}
	stop()
	if err != nil && errors.Is(err, errManager) {
		return err // stopped has been received
	}
	if err = errors.Join(err, <-stopped); err != nil {
		return err
	}
	return o.conclude(j)
}

// add adds the controllers and the load to the manager.
func (o *operator) add(life, enough context.Context) error {
	o.load = newLoad(enough, o.mgr.GetClient(), o.namespace, o.objects)
	if err := o.addControllers(life); err != nil {
		return err
	}
	if o.scale < 1 {
		if err := o.mgr.Add(manager.RunnableFunc(o.collect)); err != nil {
			return err
		}
	}
	return o.mgr.Add(o.load)
}

// afterwards asks other detectors about what is still running, and cleans up what the load left in a cluster that stays.
func (o *operator) afterwards(life context.Context) error {
	if o.peers {
		o.askPeers(o.load.before)
	}
	if o.api.Kind() != apiserver.Kubeconfig {
		return nil
	}
	<-o.load.done
	return o.load.cleanUp(life)
}

func (o *operator) begun() bool {
	select {
	case <-o.load.begun:
		return true
	default:
		return false
	}
}

// addControllers adds the clean controller, the leaky ones and what the traps do outside of reconciles.
func (o *operator) addControllers(life context.Context) error {
	if err := o.addController("app", &appReconciler{Client: o.mgr.GetClient()}); err != nil {
		return err
	}
	if len(o.leaks) == 0 {
		return o.addController(traps.LeakyController, newLeakyReconciler(o.mgr.GetClient(), nil))
	}
	for _, l := range o.leaks {
		if err := o.addLeak(life, l); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return nil
}

// addLeak sets up a trap and adds what it does.
func (o *operator) addLeak(life context.Context, l *leak) error {
	work, err := l.start()(life, traps.Env{
		Config: o.mgr.GetConfig(), Client: o.mgr.GetClient(), Cache: o.mgr.GetCache(), Controller: l.controller, Scale: o.scale,
	})
	if err != nil {
		return err
	}
	if work.Run != nil {
		if err = o.mgr.Add(o.afterStart(work.Run)); err != nil {
			return err
		}
	}
	return o.addController(l.controller, newLeakyReconciler(o.mgr.GetClient(), l.counted(work.Reconcile)))
}

// afterStart has what a trap does beside its reconciles begin when the Apps are there: growth that begins before them looks like
// theirs until there is more of it.
func (o *operator) afterStart(run manager.RunnableFunc) manager.RunnableFunc {
	return func(ctx context.Context) error {
		select {
		case <-o.load.full:
			return run(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

func (o *operator) addController(name string, r reconcile.Reconciler) error {
	own := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetNamespace() == o.namespace })
	if err := builder.ControllerManagedBy(o.mgr).Named(name).For(&v1alpha1.App{}, builder.WithPredicates(own)).Complete(r); err != nil {
		return fmt.Errorf("controller %s: %w", name, err)
	}
	return nil
}

// collectEvery is how often the Go runtime collects garbage at least. The live heap is known once a collection, so where
// leakguard's intervals are shortened, this one is too.
const collectEvery = 2 * time.Minute

// collect collects garbage as often as the runtime would if its intervals were shortened too.
func (o *operator) collect(ctx context.Context) error {
	ticker := time.NewTicker(time.Duration(o.scale * float64(collectEvery)))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			runtime.GC()
		case <-ctx.Done():
			return nil
		}
	}
}

// errManager says that the manager ended by itself.
var errManager = errors.New("the manager stopped")

// wait lets the operator run until its time is over, follows what leakguard reports, and makes the outage.
func (o *operator) wait(ctx context.Context, j *judge, stopped <-chan error) error {
	look := time.NewTicker(max(50*time.Millisecond, time.Duration(o.scale*float64(leakguard.DefaultInterval)/4)))
	defer look.Stop()
	var over, outage <-chan time.Time
	if o.duration > 0 {
		over = time.After(o.duration)
	}
	if o.outage > 0 {
		outage = time.After(o.duration / 6) // early, since the watches of client-go back off for up to a minute
	}
	for {
		select {
		case <-look.C:
			if j.enough(o.mgr.Guard().Report()) {
				return nil
			}
		case <-outage:
			if err := o.api.Outage(o.outage); err != nil {
				return err
			}
		case err := <-stopped:
			return errors.Join(errManager, err)
		case <-o.api.Gone():
			return errors.New("the API server died")
		case <-over:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
