package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leakguard/leakguard/examples/operator/v1alpha1"
)

// What the load does. Every change makes two reconciles of each controller: one for itself and one for the status.
const (
	population = 8
	scaleEvery = 200 * time.Millisecond // another number of replicas
	rollEvery  = time.Second            // another image, which is what makes a trap leak
	churnEvery = 5 * time.Second        // one App goes and another comes
	loadLabel  = "apps.leakguard.example/load"
)

// load is a Runnable that keeps the controllers busy.
type load struct {
	client    client.Client
	namespace string // where its Apps are
	// enough ends it before its manager does.
	enough context.Context //nolint:containedctx // a second way to stop a Runnable
	// begun, full and done are closed when it begins, when there are as many Apps as there should be, and when it has ended.
	begun, full, done chan struct{}
	// before has goleak ignore the goroutines that were there when it began.
	before goleak.Option

	run   string // tells the Apps of this run from those of others
	count int
	names []string
	bulk  *bulk // nil for none
}

func newLoad(enough context.Context, c client.Client, namespace string, objects int) *load {
	l := &load{
		client: c, namespace: namespace, enough: enough, begun: make(chan struct{}), full: make(chan struct{}), done: make(chan struct{}),
		run: strings.ToLower(rand.Text()[:6]),
	}
	if objects > 0 {
		l.bulk = &bulk{size: objects, namespace: namespace, client: c}
	}
	return l
}

// NeedLeaderElection lets only the leader make load.
func (l *load) NeedLeaderElection() bool { return true }

// Start makes load until ctx ends. Errors are what an API server that goes away makes; the load goes on.
func (l *load) Start(ctx context.Context) error {
	defer close(l.done)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.enough, cancel)() //nolint:contextcheck // a second way to stop
	l.before = goleak.IgnoreCurrent()
	close(l.begun)
	if l.bulk != nil {
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() { l.bulk.run(ctx, l.run) })
	}
	scale, roll, churn := time.NewTicker(scaleEvery), time.NewTimer(rollEvery), time.NewTicker(churnEvery)
	defer scale.Stop()
	defer roll.Stop()
	defer churn.Stop()
	for filled := false; ; {
		for len(l.names) < population && l.create(ctx) == nil {
		}
		if !filled && len(l.names) == population {
			filled = true
			close(l.full)
		}
		select {
		case <-scale.C:
			l.patch(ctx, fmt.Sprintf(`{"spec":{"replicas":%d}}`, mathrand.IntN(100)))
		case <-roll.C:
			roll.Reset(rollEvery*3/4 + mathrand.N(rollEvery/2)) // or samples would keep step with it
			l.patch(ctx, fmt.Sprintf(`{"spec":{"image":"registry.example/web:%d"}}`, mathrand.Int32()))
		case <-churn.C:
			l.remove(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// requestTimeout bounds each request, so that one that an outage swallowed does not end the load.
const requestTimeout = 2 * time.Second

func (l *load) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	l.count++
	name := fmt.Sprintf("web-%s-%d", l.run, l.count)
	err := l.client.Create(ctx, &v1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name, Labels: map[string]string{loadLabel: l.run}},
		Spec:       v1alpha1.AppSpec{Image: "registry.example/web:1", Replicas: 1},
	})
	if err != nil {
		return err
	}
	l.names = append(l.names, name)
	return nil
}

// patch changes a random App.
func (l *load) patch(ctx context.Context, patch string) {
	if len(l.names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// What fails is tried again in another form soon enough.
	_ = l.client.Patch(ctx, app(l.namespace, l.names[mathrand.IntN(len(l.names))]), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// remove deletes the oldest App. Another one is made instead.
func (l *load) remove(ctx context.Context) {
	if len(l.names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if client.IgnoreNotFound(l.client.Delete(ctx, app(l.namespace, l.names[0]))) == nil {
		l.names = l.names[1:]
	}
}

// cleanUpTimeout is long enough for the thousands of Apps that a bulk may leave behind when it is interrupted, and for watches
// of client-go that back off.
const cleanUpTimeout = 90 * time.Second

// cleanUp removes all Apps of this run from a cluster that stays, and waits until the controllers let go of them.
func (l *load) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanUpTimeout)
	defer cancel()
	labels := client.MatchingLabels{loadLabel: l.run}
	if err := l.client.DeleteAllOf(ctx, &v1alpha1.App{}, client.InNamespace(l.namespace), labels); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		left := &v1alpha1.AppList{}
		if err := l.client.List(ctx, left, client.InNamespace(l.namespace), labels); err == nil && len(left.Items) == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.New("clean up: the Apps did not go away")
		}
	}
}

func app(namespace, name string) *v1alpha1.App {
	return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
