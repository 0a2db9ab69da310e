package leaktest

import (
	"context"
	"runtime/pprof"
)

// isParallel reports whether a test, or one that it is in, is parallel. Package testing tells only by refusing to set an
// environment variable then; after that the test can no longer become parallel.
func isParallel(t TB) (parallel bool) {
	s, ok := t.(interface{ Setenv(key, value string) })
	if !ok {
		return false
	}
	defer func() { parallel = recover() != nil }()
	s.Setenv("LEAKTEST_SERIAL", "1")
	return false
}

// leave takes the label off the calling goroutine, so that the check does not find itself. The function that it gives puts
// it on again, for the test's other cleanups.
func leave() func(scope) {
	pprof.SetGoroutineLabels(context.Background())
	return func(s scope) { s.enter(context.Background()) }
}
