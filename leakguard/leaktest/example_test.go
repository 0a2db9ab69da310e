package leaktest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"

	"github.com/leakguard/leakguard/leakguard/leaktest"
	"github.com/leakguard/leakguard/probes"
)

// printer stands in for the [testing.T] of a test: it prints the first line of each failure.
type printer struct{ cleanups []func() }

func (*printer) Helper()            {}
func (*printer) Name() string       { return "TestQueue" }
func (p *printer) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }
func (*printer) Errorf(format string, args ...any) {
	first, _, _ := strings.Cut(fmt.Sprintf(format, args...), " that had not ended")
	first, _, _ = strings.Cut(first, " that had not come back")
	first, _, _ = strings.Cut(first, "\n")
	fmt.Println(first)
}

// run runs a test's function as package testing does.
func run(test func(t *printer)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := &printer{}
		test(t)
		for _, cleanup := range slices.Backward(t.cleanups) {
			cleanup()
		}
	}()
	<-done
}

func ExampleVerifyNone() {
	stop := make(chan struct{})
	defer close(stop)
	TestQueue := func(t *printer) { // func TestQueue(t *testing.T)
		leaktest.VerifyNone(t, leaktest.Settle(50*time.Millisecond))
		go func() { <-stop }() // nobody ends it
	}
	run(TestQueue)
	// Output:
	// leaktest: TestQueue left 1 goroutines behind
}

func ExampleCheck() {
	stop := make(chan struct{})
	defer close(stop)
	run(func(t *printer) {
		leaktest.Check(t, func(context.Context) {
			go func() { <-stop }()
		}, leaktest.Settle(50*time.Millisecond))
	})
	// Output:
	// leaktest: TestQueue/Check left 1 goroutines behind
}

func ExampleIgnore() {
	stop := make(chan struct{})
	defer close(stop)
	run(func(t *printer) {
		leaktest.VerifyNone(t, leaktest.Ignore(leaktest.Suppression{
			Function: "github.com/leakguard/leakguard/leakguard/leaktest_test.flush",
			Reason:   "flushes for as long as the process lives; goes with the new client",
			Until:    time.Now().AddDate(0, 3, 0),
		}))
		go flush(stop)
	})
	fmt.Println("nothing to say")
	// Output:
	// nothing to say
}

func flush(stop <-chan struct{}) { <-stop }

func ExampleVerifyHeap() {
	seen := map[string][]byte{}
	run(func(t *printer) {
		leaktest.VerifyHeap(t, func(i int) {
			seen[fmt.Sprint("request ", i)] = make([]byte, 1024) // never deleted
		}, leaktest.Iterations(20))
	})
	// Output:
	// leaktest: the live heap grows with every iteration of TestQueue, after garbage collections, and does not stop:
}

func ExampleVerifyResources() {
	var sessions []string
	run(func(t *printer) {
		leaktest.VerifyResources(t, []probes.Probe{
			leaktest.Counter("open_sessions", func() int { return len(sessions) }),
			leaktest.FileDescriptors(),
		}, leaktest.Settle(0))
		sessions = append(sessions, "alice") // never closed
	})
	// Output:
	// leaktest: TestQueue left resources behind
}

func ExampleFind() {
	stop := make(chan struct{})
	go flush(stop)
	err := leaktest.Find(leaktest.Settle(100 * time.Millisecond))
	fmt.Println(strings.Contains(err.Error(), "leaktest_test.flush"))
	close(stop)
	// Output:
	// true
}

func ExampleGoleakOptions() {
	// A suite that stays on goleak gets the ignores for Kubernetes' libraries:
	err := goleak.Find(leaktest.GoleakOptions()...)
	fmt.Println(err)
	// Output:
	// <nil>
}

// A package's TestMain names the test that leaked: by its label, also when the test does not call VerifyNone.
//
//	func TestMain(m *testing.M) {
//		leaktest.VerifyTestMain(m)
//	}
func ExampleVerifyTestMain() {
	leaktest.VerifyTestMain(tests{}, leaktest.Cleanup(func(code int) { fmt.Println("exit code", code) }))
	// Output:
	// exit code 0
}

// tests stands in for [testing.M].
type tests struct{}

// Run implements leaktest.TestingM.
func (tests) Run() int { return 0 }
