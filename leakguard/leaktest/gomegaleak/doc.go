// Package gomegaleak has matchers for Gomega that find leaked goroutines.
//
// # Usage
//
// In a Ginkgo suite, beside the other BeforeEach nodes:
//
//	BeforeEach(func() {
//		good := gomegaleak.Goroutines()
//		DeferCleanup(func() {
//			Eventually(gomegaleak.Goroutines).WithTimeout(leaktest.DefaultSettle).ShouldNot(gomegaleak.HaveLeaked(good))
//		})
//	})
//
// and with leaktest's options, for what a suite is to leave behind:
//
//	Eventually(gomegaleak.Goroutines).ShouldNot(gomegaleak.HaveLeaked(good, leaktest.IgnoreFunction("example.com/app.flush", "flushes for ever")))
//
// Ginkgo's own goroutines are ignored, also those of its parallel processes (ginkgo -p): each process looks at its own goroutines.
//
// # Cost
//
// Each look is a dump of all goroutines of the process, which stops the world.
//
// # Concurrency
//
// Matchers may be used by one goroutine at a time.
//
// # Limits
//
// Ginkgo runs each node on a goroutine of its own, so what a spec starts cannot be told by labels, and a leak is told
// by what was there before the spec. Specs of one process run one after the other, so that blames the right one.
// Gomega's own gleak has a matcher of the same name.
package gomegaleak
