package traps

import (
	"context"
	"sync"
)

// pageSize is that of the linear memory of a WebAssembly module.
const pageSize = 64 << 10

// modules is what a WebAssembly runtime is to the operator that shares it: a list of the modules that were instantiated
// and not closed, each with a linear memory of its own. A module without a name is found by nobody, but kept all the same.
type modules struct {
	mu   sync.Mutex
	open map[*module]bool
}

// module is an instance with its memory.
type module struct{ memory []byte }

func (r *modules) instantiate(pages int) *module {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &module{memory: make([]byte, pages*pageSize)}
	r.open[m] = true
	return m
}

func (r *modules) close(m *module) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, m)
}

// policy is what the module is for.
func (m *module) policy(object Object) error {
	copy(m.memory, object.Name)
	return nil
}

// modulePerReconcile loads a policy module in each reconcile. The runtime is a model of one: what counts is that it holds
// what was not closed.
func modulePerReconcile() Trap {
	return Trap{
		Name: "module-per-reconcile", Row: "S1-23", Expect: ExpectListed, Grows: Heap, Leaves: smallLeaves,
		Title:   "Reconcile instantiates a WebAssembly module on a shared runtime, which holds its linear memory until the module is closed",
		Culprit: siteOf((*modules).instantiate, ""),
		Leak:    instantiating(func(*modules, *module) {}),
		Twin:    instantiating((*modules).close),
	}
}

// modulePages is the linear memory of the policy.
const modulePages = 2

func instantiating(after func(*modules, *module)) Start {
	return func(_ context.Context, env Env) (Work, error) {
		var mu sync.Mutex
		shared, room := &modules{open: map[*module]bool{}}, 0 // the policy is not needed in each reconcile
		return onObjects(func(_ context.Context, object Object) error {
			mu.Lock()
			defer mu.Unlock()
			if room += env.some(1); room < modulePages*pageSize {
				return nil
			}
			room -= modulePages * pageSize
			m := shared.instantiate(modulePages)
			defer after(shared, m)
			return m.policy(object)
		}), nil
	}
}
