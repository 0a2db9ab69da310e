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

	"github.com/leakguard/leakguard/probes"
)

// everNewKinds registers types under names that nobody has used before, which a scheme keeps for ever. All of it is in maps,
// which grow by doubling, in steps ever farther apart: the scheme is registered, so that its size tells.
func everNewKinds() Trap {
	return Trap{
		Name: "ever-new-kinds", Row: "S2-15n", Expect: ExpectAlarm, Grows: Counted, Controller: LeakyController,
		Within:  120, // it must climb, and go on
		Title:   "the types of a scheme are added again under ever new kinds, none of which it forgets; its size is given to leakguard.AddProbe",
		Culprit: Site{Function: "entries of kinds"},
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
	return func(life context.Context, env Env) (Work, error) {
		var mu sync.Mutex // a scheme is not to be changed while it is read
		scheme, objects, next := k8sruntime.NewScheme(), coreObjects(), 0
		kinds := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(scheme.AllKnownTypes())
		}
		if err := addProbe(life, probes.Size("kinds", kinds).For(env.Controller)); err != nil {
			return Work{}, err
		}
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
