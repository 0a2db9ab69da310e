package traps

import (
	"context"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// everNewKinds registers types under names that nobody has used before, which a scheme keeps for ever.
func everNewKinds() Trap {
	return Trap{
		Name: "ever-new-kinds", Row: "S2-15n", Expect: ExpectListed, Grows: Heap,
		Title:   "the types of a scheme are added again under ever new kinds, none of which it forgets",
		Culprit: siteOf(addKind, ""),
		Leak:    registering(false),
		Twin:    registering(true),
	}
}

// addKind registers one of several types, since a scheme compares a kind with all others of its type.
func addKind(scheme *k8sruntime.Scheme, kind int) {
	types := []k8sruntime.Object{
		&corev1.Pod{}, &corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Service{},
		&corev1.Node{}, &corev1.Namespace{}, &corev1.Endpoints{}, &corev1.ServiceAccount{}, //nolint:staticcheck // any type will do
	}
	gvk := schema.GroupVersionKind{Group: "tenants.example", Version: "v1", Kind: "Tenant" + strconv.Itoa(kind)}
	scheme.AddKnownTypeWithName(gvk, types[kind%len(types)])
}

func registering(again bool) Start {
	return func(context.Context, Env) (Work, error) {
		var mu sync.Mutex // a scheme is not to be changed while it is read
		scheme, next := k8sruntime.NewScheme(), 0
		return onObjects(func(context.Context, Object) error {
			mu.Lock()
			defer mu.Unlock()
			if again {
				next = 0
			}
			for range many / 2 {
				addKind(scheme, next)
				next++
			}
			return nil
		}), nil
	}
}
