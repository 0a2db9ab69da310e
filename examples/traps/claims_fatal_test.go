package traps_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"weak"
)

// wakeEnv makes the test binary a process that wakes a leaked goroutine: "profile" after it was called leaked, "none" without.
const wakeEnv = "LEAKGUARD_TRAPS_WAKE"

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

// wake is the child process of TestLeakedAndWoken.
func wake(mode string) {
	done := make(chan int, 1)
	p := startLeaked(done)
	for range 100 {
		runtime.Gosched() // it parks
	}
	if mode == "profile" {
		var dump bytes.Buffer
		if err := pprof.Lookup("goroutineleak").WriteTo(&dump, 2); err != nil {
			panic(err)
		}
		fmt.Println("called leaked:", strings.Contains(dump.String(), "waitInBox"))
	}
	b := p.Value()
	b.c <- 1
	<-done
	fmt.Println("woken")
}

func TestLeakedAndWoken(t *testing.T) {
	for _, mode := range []string{"none", "profile"} {
		if mode == "profile" && pprof.Lookup("goroutineleak") == nil {
			continue // this runtime has no such profile, and so no such danger
		}
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$") //nolint:gosec // this very binary
		child.Env = append(os.Environ(), wakeEnv+"="+mode)
		out, err := child.CombinedOutput()
		killed := err != nil && bytes.Contains(out, []byte("bad g->status in ready"))
		woken := err == nil && bytes.Contains(out, []byte("woken"))
		if (mode == "profile") != killed || (mode == "none") != woken {
			t.Errorf("%s: %v:\n%s", mode, err, firstLines(out))
		}
	}
}

func firstLines(out []byte) []byte {
	head, _ := io.ReadAll(io.LimitReader(bytes.NewReader(out), 2000))
	return head
}
