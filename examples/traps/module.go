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
		Name: "module-per-reconcile", Row: "S1-23", Expect: ExpectListed, Grows: Heap,
		Gap:     "nothing in 75 seconds at --scale=0.05",
		Title:   "Reconcile instantiates a WebAssembly module on a shared runtime, which holds its linear memory until the module is closed",
		Culprit: siteOf((*modules).instantiate, ""),
		Leak:    instantiating(func(*modules, *module) {}),
		Twin:    instantiating((*modules).close),
	}
}

func instantiating(after func(*modules, *module)) Start {
	return func(context.Context, Env) (Work, error) {
		shared := &modules{open: map[*module]bool{}}
		return onObjects(func(_ context.Context, object Object) error {
			m := shared.instantiate(5)
			defer after(shared, m)
			return m.policy(object)
		}), nil
	}
}
