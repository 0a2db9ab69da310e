package traps

import (
	"context"
	"reflect"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// everNewKinds registers types under names that nobody has used before, which a scheme keeps for ever.
func everNewKinds() Trap {
	return Trap{
		Name: "ever-new-kinds", Row: "S2-15n", Expect: ExpectListed, Grows: Heap, Leaves: smallLeaves,
		Gap:     "nothing in 100 seconds at --scale=0.05: all of it is in maps, which grow by doubling, in steps ever farther apart",
		Title:   "the types of a scheme are added again under ever new kinds, none of which it forgets",
		Culprit: siteOf(addKind, ""),
		Leak:    registering(false),
		Twin:    registering(true),
	}
}

// kindSize is what a scheme keeps of a kind, about, in several maps.
const kindSize = 200

// addKind registers a type under a kind of this number.
func addKind(scheme *k8sruntime.Scheme, kind int, object k8sruntime.Object) {
	gvk := schema.GroupVersionKind{Group: "tenants.example", Version: "v1", Kind: "Tenant" + strconv.Itoa(kind)}
	scheme.AddKnownTypeWithName(gvk, object)
}

// coreObjects gives one of each type of the core group: a scheme compares a kind with all others of its type.
func coreObjects() (objects []k8sruntime.Object) {
	for _, known := range clientgoscheme.Scheme.KnownTypes(corev1.SchemeGroupVersion) {
		if object, ok := reflect.TypeAssert[k8sruntime.Object](reflect.New(known)); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

func registering(again bool) Start {
	return func(_ context.Context, env Env) (Work, error) {
		var mu sync.Mutex // a scheme is not to be changed while it is read
		scheme, objects, next := k8sruntime.NewScheme(), coreObjects(), 0
		return onObjects(func(context.Context, Object) error {
			mu.Lock()
			defer mu.Unlock()
			if again {
				next = 0
			}
			for range env.some(kindSize) {
				addKind(scheme, next, objects[next%len(objects)])
				next++
			}
			return nil
		}), nil
	}
}
