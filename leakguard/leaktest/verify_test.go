package leaktest_test

import (
	"context"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard/leaktest"
)

// soon is a settle time for tests that leak on purpose.
const soon = 200 * time.Millisecond

// park blocks until its channel is closed.
func park(stop <-chan struct{}) { <-stop }

// parked starts a goroutine that ends when the outer test does.
func parked(t *testing.T) chan struct{} {
	t.Helper()
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	return stop
}

func TestVerifyNoneLeak(t *testing.T) {
	stop := parked(t)
	f := runFake("TestInner", func(f *fake) {
		leaktest.VerifyNone(f, leaktest.Settle(soon))
		go park(stop)
	})
	// How long it waited is the runtime's word: after a leak profile Go 1.27 may count from an earlier collection.
	wantFailure(t, f, "TestInner left 1 goroutines behind", "[chan receive, for ",
		"started by the go statement at leaktest/verify_test.go:33 in ", "leaktest_test.park")
}

func TestVerifyNoneClean(t *testing.T) {
	f := runFake("TestInner", func(f *fake) {
		leaktest.VerifyNone(f)
		done := make(chan struct{})
		go func() {
			time.Sleep(5 * time.Millisecond)
			close(done)
		}()
		go park(done)
	})
	wantSilence(t, f)
}

func TestVerifyNoneGrandchildren(t *testing.T) {
	stop := parked(t)
	f := runFake("TestInner", func(f *fake) {
		leaktest.VerifyNone(f, leaktest.Settle(soon))
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 3 {
				go park(stop)
			}
		})
		wg.Wait()
	})
	wantFailure(t, f, "left 3 goroutines behind", "3 × goroutine [chan receive")
}

func TestVerifyNoneOthersLeak(t *testing.T) {
	stop := parked(t)
	clean := make(chan struct{})
	leaked := make(chan *fake)
	go func() {
		leaked <- runFake("TestLeaky", func(f *fake) {
			leaktest.VerifyNone(f, leaktest.Settle(soon))
			for range 5 {
				go park(stop)
			}
			<-clean
		})
	}()
	f := runFake("TestClean", func(f *fake) {
		leaktest.VerifyNone(f, leaktest.Settle(soon))
		go park(clean)
		close(clean)
	})
	wantSilence(t, f)
	wantFailure(t, <-leaked, "TestLeaky left 5 goroutines")
}

func TestVerifyNoneSubtest(t *testing.T) {
	stop := parked(t)
	var child *fake
	parent := runFake("TestParent", func(f *fake) {
		leaktest.VerifyNone(f, leaktest.Settle(soon))
		child = runFake("TestParent/child", func(f *fake) {
			leaktest.VerifyNone(f, leaktest.Settle(soon))
			go park(stop)
		})
	})
	wantFailure(t, child, "TestParent/child left 1 goroutines")
	wantSilence(t, parent) // it has been said
}

func TestVerifyNoneSubtestWithoutCheck(t *testing.T) {
	stop := parked(t)
	parent := runFake("TestParent", func(f *fake) {
		leaktest.VerifyNone(f, leaktest.Settle(soon))
		runFake("TestParent/child", func(*fake) { go park(stop) })
	})
	wantFailure(t, parent, "TestParent left 1 goroutines")
}

func TestVerifyNoneDeferred(t *testing.T) {
	stop := parked(t)
	for name, body := range map[string]func(f *fake){
		"statement": func(f *fake) {
			defer leaktest.VerifyNone(f, leaktest.Settle(soon))
			go park(stop)
		},
		"literal": func(f *fake) {
			defer func() {
				leaktest.VerifyNone(f, leaktest.Settle(soon))
			}()
			go park(stop)
		},
		"helper": func(f *fake) {
			defer verify(f)
			go park(stop)
		},
		"goexit": func(f *fake) {
			defer verify(f)
			go park(stop)
			runtime.Goexit() // as t.FailNow does
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := runFake("TestInner", func(f *fake) { withoutOthers(t, f, body) })
			wantFailure(t, f, "TestInner left", "leaktest_test.park")
		})
	}
}

// withoutOthers runs a body whose check is about all goroutines, which the outer test's are not part of.
func withoutOthers(t *testing.T, f *fake, body func(f *fake)) {
	t.Helper()
	body(f)
}

func verify(f *fake) {
	leaktest.VerifyNone(f, leaktest.Settle(soon))
}

func TestVerifyNoneDeferredInParallel(t *testing.T) {
	f := &fake{name: "TestInner", parallel: true}
	f.run(func(f *fake) {
		defer leaktest.VerifyNone(f)
	})
	wantFailure(t, f, leaktest.ErrParallel.Error(), "first line")
}

func TestVerifyNoneWrongOrder(t *testing.T) {
	stop := parked(t)
	f := runFake("TestInner", func(f *fake) {
		go park(stop)
		leaktest.VerifyNone(f, leaktest.Settle(soon))
	})
	wantFailure(t, f, leaktest.ErrOrder.Error(), "TestInner has started 1 goroutines before it", "leaktest_test.TestVerifyNoneWrongOrder")
}

func TestVerifyNoneLostLabel(t *testing.T) {
	stop := parked(t)
	f := runFake("TestInner", func(f *fake) {
		leaktest.VerifyNone(f, leaktest.Settle(soon))
		pprof.Do(context.Background(), pprof.Labels("a", "b"), func(context.Context) {
			go park(stop)
		})
	})
	wantFailure(t, f, "TestInner left 1 goroutines")
}

func TestVerifyNoneContextKeepsLabel(t *testing.T) {
	stop := parked(t)
	f := runFake("TestInner", func(f *fake) {
		ctx := leaktest.VerifyNone(f, leaktest.Settle(soon))
		var wg sync.WaitGroup
		wg.Go(func() {
			pprof.Do(ctx, pprof.Labels("a", "b"), func(context.Context) {
				go park(stop)
			})
		})
		wg.Wait()
	})
	wantFailure(t, f, "TestInner left 1 goroutines")
}

func TestVerifyNoneBadOption(t *testing.T) {
	for name, o := range map[string]leaktest.Option{
		"nil":            nil,
		"settle":         leaktest.Settle(-1),
		"reason":         leaktest.Ignore(leaktest.Suppression{Function: "f"}),
		"everything":     leaktest.Ignore(leaktest.Suppression{Reason: "because"}),
		"regexp":         leaktest.Ignore(leaktest.Suppression{Reason: "because", Regexp: "("}),
		"rule":           leaktest.IgnoreRule("GOR-000", "because"),
		"while settling": leaktest.WhileSettling(nil),
	} {
		f := runFake("TestInner", func(f *fake) { leaktest.VerifyNone(f, o) })
		if len(f.failures) != 1 || !strings.Contains(f.text(), leaktest.ErrOption.Error()) {
			t.Errorf("%s: got %q, want one failure with %q", name, f.failures, leaktest.ErrOption)
		}
	}
}
