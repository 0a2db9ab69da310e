// Package parallel has ten parallel tests of which three leak. The environment variable CHECK says who looks for that:
// leaktest, or goleak in the only form it has for a single test.
package parallel

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leakguard/leakguard/leakguard/leaktest"
)

func verify(t *testing.T) {
	t.Helper()
	if os.Getenv("CHECK") == "goleak" {
		t.Cleanup(func() { goleak.VerifyNone(t) })
		return
	}
	leaktest.VerifyNone(t, leaktest.Settle(100*time.Millisecond))
}

// work starts some goroutines and waits for them.
func work(d time.Duration) {
	done := make(chan int)
	for i := range 4 {
		go func() {
			time.Sleep(d)
			done <- i
		}()
	}
	for range 4 {
		<-done
	}
}

func TestClean1(t *testing.T) { verify(t); t.Parallel(); work(2 * time.Millisecond) }
func TestClean2(t *testing.T) { verify(t); t.Parallel(); work(5 * time.Millisecond) }
func TestClean3(t *testing.T) { t.Parallel(); verify(t); work(20 * time.Millisecond) }
func TestClean4(t *testing.T) { t.Parallel(); verify(t); work(40 * time.Millisecond) }
func TestClean5(t *testing.T) { t.Parallel(); verify(t); work(1 * time.Millisecond) }
func TestClean6(t *testing.T) { verify(t); t.Parallel(); work(30 * time.Millisecond) }

func TestCleanSubtests(t *testing.T) {
	verify(t)
	t.Parallel()
	for _, name := range []string{"a", "b", "c"} {
		t.Run(name, func(t *testing.T) {
			verify(t)
			t.Parallel()
			work(3 * time.Millisecond)
		})
	}
}

func TestLeakSend(t *testing.T) {
	verify(t)
	t.Parallel()
	result := make(chan int)
	go func() { result <- 1 }()
	work(2 * time.Millisecond)
}

func TestLeakTicker(t *testing.T) {
	t.Parallel()
	verify(t)
	ticker := time.NewTicker(time.Hour)
	go func() {
		for range ticker.C {
		}
	}()
	work(5 * time.Millisecond)
}

func TestLeakGrandchild(t *testing.T) {
	verify(t)
	t.Parallel()
	started := make(chan struct{})
	go func() {
		go func() { select {} }()
		close(started)
	}()
	<-started
	work(1 * time.Millisecond)
}
