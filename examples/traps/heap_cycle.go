package traps

import (
	"context"
	"runtime"
)

// node is half of a cycle.
type node struct {
	peer *node
	state
}

// newPair makes two nodes that hold each other.
func newPair(object Object) *node {
	a, b := &node{state: state{name: object.Name}}, &node{state: state{name: object.Name}}
	a.peer, b.peer = b, a
	return a
}

// finalizerCycle sets a finalizer on a part of a cycle, which is then never freed.
func finalizerCycle() Trap {
	return Trap{
		Name: "finalizer-cycle", Row: "S1-15b", Expect: ExpectAlarm, Grows: Heap,
		Title:   "runtime.SetFinalizer on one of two objects that hold each other: neither is ever freed",
		Culprit: siteOf(newPair, ""),
		Leak:    inReconcile(leakFinalizerCycle),
		Twin:    inReconcile(cleanFinalizerCycle),
	}
}

func leakFinalizerCycle(_ context.Context, object Object) error {
	for range states / 2 {
		runtime.SetFinalizer(newPair(object), func(*node) {})
	}
	return nil
}

func cleanFinalizerCycle(_ context.Context, object Object) error {
	for range states / 2 {
		runtime.AddCleanup(newPair(object), func(int) {}, 0)
	}
	return nil
}

// cleanupHoldsItself gives a cleanup an argument from which its object can be reached.
func cleanupHoldsItself() Trap {
	return Trap{
		Name: "cleanup-holds-itself", Row: "S1-15f", Expect: ExpectAlarm, Grows: Heap,
		Title:   "runtime.AddCleanup with an argument that reaches the object itself: it is never freed",
		Culprit: siteOf(newPair, ""),
		Leak:    inReconcile(leakCleanup),
		Twin:    inReconcile(cleanFinalizerCycle),
	}
}

func leakCleanup(_ context.Context, object Object) error {
	for range states / 2 {
		pair := newPair(object)
		runtime.AddCleanup(pair, func(*node) {}, pair.peer)
	}
	return nil
}
