package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leakguard/leakguard/examples/operator/v1alpha1"
)

// bulkWorkers is how many requests of a bulk are under way at once.
const bulkWorkers = 4

// bulk is what --objects asks for: so many Apps more that are all created, then all updated, then all deleted, once.
type bulk struct {
	size      int
	namespace string
	client    client.Client
	// created, updated and deleted count what was done.
	created, updated, deleted atomic.Int64
}

// run makes the Apps of a load's run come and go.
func (b *bulk) run(ctx context.Context, run string) {
	object := func(i int) *v1alpha1.App { return app(b.namespace, fmt.Sprintf("bulk-%s-%d", run, i)) }
	b.each(ctx, &b.created, func(ctx context.Context, i int) error {
		a := object(i)
		a.Labels = map[string]string{loadLabel: run}
		a.Spec = v1alpha1.AppSpec{Image: "registry.example/web:1", Replicas: 1}
		err := b.client.Create(ctx, a)
		if apierrors.IsAlreadyExists(err) { // by the try before, whose answer was lost
			return nil
		}
		return err
	})
	b.each(ctx, &b.updated, func(ctx context.Context, i int) error {
		return b.client.Patch(ctx, object(i), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"registry.example/web:2"}}`)))
	})
	b.each(ctx, &b.deleted, func(ctx context.Context, i int) error {
		return client.IgnoreNotFound(b.client.Delete(ctx, object(i)))
	})
}

// each does one thing with all Apps, and counts with which it worked.
func (b *bulk) each(ctx context.Context, done *atomic.Int64, do func(context.Context, int) error) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range bulkWorkers {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= b.size {
					return
				}
				if b.try(ctx, i, do) {
					done.Add(1)
				}
			}
		})
	}
	group.Wait()
}

// An API server may be away for a while, such as when it is restarted.
const (
	patience   = 45 * time.Second
	retryEvery = 250 * time.Millisecond
)

// try does a request until it works, or the patience or ctx ends.
func (b *bulk) try(ctx context.Context, i int, do func(context.Context, int) error) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(retryEvery)
	defer again.Stop()
	for {
		request, cancelRequest := context.WithTimeout(ctx, requestTimeout)
		err := do(request, i)
		cancelRequest()
		if err == nil {
			return true
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}
}

// done gives how many Apps were created, updated and deleted; none where there is no bulk.
func (b *bulk) done() bulkResult {
	if b == nil {
		return bulkResult{}
	}
	return bulkResult{Created: b.created.Load(), Updated: b.updated.Load(), Deleted: b.deleted.Load()}
}

// bulkResult is the part of a result about the bulk.
type bulkResult struct {
	Created int64 `json:"created"`
	Updated int64 `json:"updated"`
	Deleted int64 `json:"deleted"`
}

// check gives an error unless all Apps came and went.
func (b *bulk) check() error {
	if want := int64(b.size); b.created.Load() < want || b.updated.Load() < want || b.deleted.Load() < want {
		return fmt.Errorf("of %d Apps only %d were created, %d updated and %d deleted within the duration", b.size, b.created.Load(), b.updated.Load(), b.deleted.Load())
	}
	return nil
}
