package leaktest_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/leakguard/leakguard/leakguard/leaktest"
)

// BenchmarkClean measures what the check adds to a test that leaks nothing, beside goleak, in processes with some goroutines
// that were there before. Both include the goroutine and the cleanups of the test itself.
func BenchmarkClean(b *testing.B) {
	for _, others := range []int{0, 200, 1000} {
		stop := make(chan struct{})
		for range others {
			go park(stop)
		}
		b.Run(fmt.Sprintf("leaktest/others=%d", others), func(b *testing.B) {
			for b.Loop() {
				if f := runFake("TestInner", func(f *fake) { leaktest.VerifyNone(f) }); len(f.failures) > 0 {
					b.Fatal(f.text())
				}
			}
		})
		b.Run(fmt.Sprintf("goleak/others=%d", others), func(b *testing.B) {
			current := goleak.IgnoreCurrent()
			for b.Loop() {
				runFake("TestInner", func(f *fake) {
					f.Cleanup(func() { goleak.VerifyNone(b, current, goleak.IgnoreAnyFunction("testing.(*B).launch")) })
				})
			}
		})
		close(stop)
	}
}
