package probes_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leavesNothing waits at the end of a test, after all its other cleanups, until nothing runs that did not run before it: other
// tests look at the labels of all connections.
func leavesNothing(t *testing.T) {
	t.Helper()
	others := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		for range 20 { // each waits for a while
			if goleak.Find(others) == nil {
				return
			}
		}
		t.Error("something is left running")
	})
}
