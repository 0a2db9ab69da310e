package leakguard_test

import (
	"testing"

	"go.uber.org/goleak"
)

// strandedQueue is a goroutine of controller-runtime v0.23 that may be left behind when a manager stops: a priority queue that
// hands an item to a worker which has just returned, since the queue was shut down, waits for ever. v0.25 has mended it.
func strandedQueue() goleak.Option {
	return goleak.IgnoreAnyFunction("sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.(*priorityqueue[...]).handleReadyItems.func1.1")
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, strandedQueue()) }
