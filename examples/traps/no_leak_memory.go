package traps

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"

	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"
)

// What is said to leak memory and does not.

func closureCycle() Trap {
	return notALeak("closure-cycle", "S1-15", "objects that hold each other through a closure are freed all the same", inReconcile(func(_ context.Context, object Object) error {
		for range states {
			type part struct {
				state
				get func() string
			}
			p := &part{state: state{name: object.Name}}
			p.get = func() string { return p.name }
		}
		return nil
	}))
}

func resurrected() Trap {
	return notALeak("resurrected", "S1-17a", "a finalizer hands its object to a goroutine, which finds it intact and ends", inReconcile(func(_ context.Context, object Object) error {
		runtime.SetFinalizer(newState(object), func(s *state) {
			go func() { s.data[0] = byte(len(s.name)) }()
		})
		return nil
	}))
}

func pooledObjects() Trap {
	pool := &sync.Pool{New: func() any { return new(corev1.Pod) }}
	return notALeak("pooled-objects", "S2-12", "a sync.Pool of API objects, which each second collection empties", inReconcile(func(_ context.Context, object Object) error {
		for range replicas {
			pod, ok := pool.Get().(*corev1.Pod)
			if !ok {
				return fmt.Errorf("traps: %w", ErrUnknown)
			}
			newPod(object).DeepCopyInto(pod)
			pool.Put(pod)
		}
		return nil
	}))
}

func rawMessages() Trap {
	return notALeak("raw-messages", "S2-14", "a json.RawMessage is marshalled twice, which makes garbage only", inReconcile(func(_ context.Context, object Object) error {
		for range states {
			once, err := json.Marshal(newPod(object))
			if err != nil {
				return fmt.Errorf("traps: %w", err)
			}
			if _, err = json.Marshal(map[string]json.RawMessage{"pod": once}); err != nil {
				return fmt.Errorf("traps: %w", err)
			}
		}
		return nil
	}))
}

func repeatedTypes() Trap {
	scheme := k8sruntime.NewScheme()
	var mu sync.Mutex
	return notALeak("repeated-types", "S2-15", "the same types are added to a scheme again and again, which knows them already", inReconcile(func(context.Context, Object) error {
		mu.Lock()
		defer mu.Unlock()
		return corev1.AddToScheme(scheme)
	}))
}

// handlerOfItsInformer is a cycle that a running informer holds anyway, and that goes when it is stopped.
func handlerOfItsInformer() Trap {
	t := notALeak("handler-cycle", "S2-06", "a handler captures its own informer, and both go when the informer is stopped", watching(nil, func(ctx context.Context, c dynamic.Interface, object Object) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		informer := dynamicinformer.NewFilteredDynamicInformer(c, configMaps, object.Namespace, 0, nil, nil).Informer()
		_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { _ = informer.HasSynced() }})
		go informer.Run(ctx.Done())
		return err
	}))
	t.NeedsAPI = true
	return t
}
