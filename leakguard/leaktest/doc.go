// Package leaktest fails the test that leaks.
//
// [VerifyNone] in the first line of a test labels the test's goroutine; all that it starts inherits the label, so the check at
// its end knows what is this test's, also among parallel tests.
//
// # Usage
//
//	func TestQueue(t *testing.T) {
//		leaktest.VerifyNone(t)
//		t.Parallel()
//		…
//	}
//
// # Cost
//
// A clean test pays for two goroutine profiles, which stop the world for some tens of microseconds each. Only when something
// is left at the end a check takes dumps, which stop the world longer, and waits.
//
// # Concurrency
//
// All functions may be called by parallel tests, unless their comment says that they refuse to.
//
// # Limits
//
// Labels do not reach callbacks of [time.AfterFunc], finalizers and cleanups, jobs for a pool of workers that was running
// before the test, and what code starts after it has set labels from a context that is not the test's. Of these a check
// sees what was started for a function literal of the test's own function, or by a goroutine whose line of creators leads
// to the test's.
package leaktest
