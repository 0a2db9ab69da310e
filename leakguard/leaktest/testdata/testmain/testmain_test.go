// Package testmain is run by a test with some of its tests chosen by -run.
package testmain

import (
	"os"
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv("STRAY") != "" {
		go func() { select {} }()
	}
	options := []leaktest.Option{leaktest.Settle(50 * time.Millisecond)}
	if os.Getenv("NOPROOF") != "" {
		options = append(options, leaktest.WithoutProof())
	}
	leaktest.VerifyTestMain(m, options...)
}

func TestClean(t *testing.T) {
	done := make(chan struct{})
	go close(done)
	<-done
}

func serve(stop chan struct{}) { <-stop }

func TestLeak(*testing.T) { go serve(make(chan struct{})) }

// reachable can be reached from everywhere, so the runtime cannot prove that nobody will close it.
var reachable = make(chan struct{})

func TestReachable(*testing.T) { go serve(reachable) }

func TestLeakGrandchild(*testing.T) {
	started := make(chan struct{})
	go func() {
		go serve(make(chan struct{}))
		close(started)
	}()
	<-started
}

func TestLeakTimer(*testing.T) {
	fired := make(chan struct{})
	time.AfterFunc(1, func() {
		close(fired)
		select {}
	})
	<-fired
}

func TestParallelLeak(t *testing.T) {
	t.Parallel()
	t.Run("sub", func(t *testing.T) {
		leaktest.VerifyNone(t, leaktest.Ignore(leaktest.Suppression{Function: "github.com/leakguard/leakguard/leakguard/leaktest/testdata/testmain.serve", Reason: "for TestMain to see"}))
		go serve(make(chan struct{}))
	})
}

func TestFail(t *testing.T) { go serve(make(chan struct{})); t.Error("failed on purpose") }

func TestPanic(*testing.T) { panic("on purpose") }

func TestExit(*testing.T) { os.Exit(7) }

func TestShort(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	go serve(make(chan struct{}))
}

func BenchmarkClean(b *testing.B) {
	for b.Loop() {
		done := make(chan struct{})
		go close(done)
		<-done
	}
}

func FuzzClean(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) {
		leaktest.VerifyNone(t)
		done := make(chan struct{})
		go close(done)
		<-done
	})
}
