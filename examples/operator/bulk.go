package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
		return b.client.Create(ctx, a)
	})
	b.each(ctx, &b.updated, func(ctx context.Context, i int) error {
		return b.client.Patch(ctx, object(i), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"registry.example/web:2"}}`)))
	})
	b.each(ctx, &b.deleted, func(ctx context.Context, i int) error {
		return b.client.Delete(ctx, object(i))
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

// try gives a request a few chances, since an API server may be away for a moment.
func (b *bulk) try(ctx context.Context, i int, do func(context.Context, int) error) bool {
	for range 3 {
		request, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := do(request, i)
		cancel()
		if err == nil {
			return true
		}
	}
	return false
}

// check gives an error unless all Apps came and went.
func (b *bulk) check() error {
	if want := int64(b.size); b.created.Load() < want || b.updated.Load() < want || b.deleted.Load() < want {
		return fmt.Errorf("of %d Apps only %d were created, %d updated and %d deleted within the duration", b.size, b.created.Load(), b.updated.Load(), b.deleted.Load())
	}
	return nil
}
