// Package suite is a Ginkgo suite for the tests of gomegaleak: some of its specs leak when LEAK is set.
package suite

import (
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/leakguard/leakguard/leakguard/leaktest/gomegaleak"
)

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Suite")
}

func wait(stop chan struct{}) { <-stop }

var _ = Describe("a controller", func() {
	BeforeEach(func() {
		good := gomegaleak.Goroutines()
		DeferCleanup(func() {
			Eventually(gomegaleak.Goroutines).WithTimeout(time.Second).ShouldNot(gomegaleak.HaveLeaked(good))
		})
	})
	for i := range 6 {
		It(fmt.Sprintf("is clean %d", i), func() {
			stop := make(chan struct{})
			go wait(stop)
			time.AfterFunc(20*time.Millisecond, func() { close(stop) })
		})
	}
	for i := range 2 {
		It(fmt.Sprintf("leaks %d", i), func() {
			stop := make(chan struct{})
			go wait(stop)
			if os.Getenv("LEAK") == "" {
				close(stop)
			}
		})
	}
})
