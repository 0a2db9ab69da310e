package leaktest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leakguard/leakguard/leakguard/leaktest"
)

func TestFind(t *testing.T) {
	if err := leaktest.Find(); err != nil {
		t.Fatalf("nothing is left, but Find says: %v", err)
	}
	stop := parked(t)
	go park(stop)
	if err := leaktest.Find(leaktest.Settle(soon)); !errors.Is(err, leaktest.ErrLeak) || !strings.Contains(err.Error(), "leaktest_test.park") {
		t.Errorf("Find gives %v, want ErrLeak and the function", err)
	}
	leaks, err := leaktest.Leaks(leaktest.Settle(0))
	if err != nil || len(leaks) != 1 || leaks[0].WaitReason != "chan receive" || leaks[0].CreatedBy.IsZero() {
		t.Errorf("Leaks gives %+v, %v; want the one goroutine", leaks, err)
	}
	if err := leaktest.Find(leaktest.Cleanup(func(int) {})); !errors.Is(err, leaktest.ErrOption) {
		t.Errorf("Find(Cleanup) gives %v, want ErrOption", err)
	}
}

func TestCheck(t *testing.T) {
	stop := parked(t)
	go park(stop) // before, so not of Check
	clean := runFake("TestInner", func(f *fake) {
		leaktest.Check(f, func(context.Context) { <-time.After(time.Millisecond) }, leaktest.Settle(soon))
	})
	wantSilence(t, clean)
	leaky := runFake("TestInner", func(f *fake) {
		leaktest.VerifyNone(f, leaktest.Settle(soon))
		leaktest.Check(f, func(context.Context) { go park(stop) }, leaktest.Settle(soon))
	})
	wantFailure(t, leaky, "TestInner/Check left 1 goroutines")
}

func TestCheckPanics(t *testing.T) {
	var got any
	runFake("TestInner", func(f *fake) {
		defer func() { got = recover() }()
		leaktest.Check(f, func(context.Context) { panic("on purpose") })
	})
	if got != "on purpose" {
		t.Errorf("Check panics with %v, want the panic of its function", got)
	}
}

func TestGoleakOptions(t *testing.T) {
	if err := goleak.Find(leaktest.GoleakOptions()...); err != nil {
		t.Errorf("goleak with our ignores: %v", err)
	}
	stop := parked(t)
	go park(stop)
	if err := goleak.Find(leaktest.GoleakOptions()...); err == nil {
		t.Error("goleak with our ignores finds nothing any more")
	}
}
