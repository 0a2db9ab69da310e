package traps_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"testing"
	"weak"
)

// dieEnv makes the test binary a process that does what may end it.
const dieEnv = "LEAKGUARD_TRAPS_DIE"

// What such a process does.
const (
	dieClose   = "close"   // closes a channel that a goroutine sends on
	dieWake    = "wake"    // wakes a goroutine through a weak pointer
	dieProfile = "profile" // does so after the profile has called it leaked
)

// die is what the process does.
func die(how string) {
	if how == dieClose {
		closeUnderSender()
		return
	}
	wake(how == dieProfile)
}

// dying runs such a process and gives what it printed.
func dying(t *testing.T, how string) (out []byte, err error) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$") //nolint:gosec // this very binary
	child.Env = append(os.Environ(), dieEnv+"="+how)
	return child.CombinedOutput()
}

func closeUnderSender() {
	c := make(chan int)
	go func() { c <- 1 }()
	untilParked("chan send")
	close(c)
	select {} // the panic of the other goroutine ends it
}

// untilParked waits until a goroutine waits for this reason.
func untilParked(reason string) {
	stacks := make([]byte, 1<<16)
	for !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("["+reason)) {
		runtime.Gosched()
	}
}

func TestClosePanics(t *testing.T) {
	if out, err := dying(t, dieClose); err == nil || !bytes.Contains(out, []byte("panic: send on closed channel")) {
		t.Errorf("got %v, want a panic:\n%s", err, firstLines(out))
	}
}

// box holds the channel of a goroutine. The stack of the goroutine is the only one that holds the box, so that to the
// profile it is leaked; a weak pointer reaches it all the same.
type box struct {
	c    chan int
	done chan<- int
}

func startLeaked(done chan<- int) weak.Pointer[box] {
	b := &box{c: make(chan int), done: done}
	go waitInBox(b)
	return weak.Make(b)
}

func waitInBox(b *box) { b.done <- <-b.c }

func wake(profiled bool) {
	done := make(chan int, 1)
	p := startLeaked(done)
	untilParked("chan receive")
	if profiled {
		if err := pprof.Lookup("goroutineleak").WriteTo(io.Discard, 2); err != nil {
			panic(err)
		}
	}
	b := p.Value()
	b.c <- 1
	<-done
	fmt.Println("woken")
}

func TestLeakedAndWoken(t *testing.T) {
	for _, how := range []string{dieWake, dieProfile} {
		if how == dieProfile && pprof.Lookup("goroutineleak") == nil {
			continue // this runtime has no such profile, and so no such danger
		}
		out, err := dying(t, how)
		killed := err != nil && bytes.Contains(out, []byte("bad g->status in ready"))
		woken := err == nil && bytes.Contains(out, []byte("woken"))
		if (how == dieProfile) != killed || (how == dieWake) != woken {
			t.Errorf("%s: %v:\n%s", how, err, firstLines(out))
		}
	}
}

func firstLines(out []byte) []byte {
	head, _ := io.ReadAll(io.LimitReader(bytes.NewReader(out), 2000))
	return head
}
