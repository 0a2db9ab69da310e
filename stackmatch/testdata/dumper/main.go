// Command dumper writes goroutine dumps of itself in every form, as inputs for the tests of package stackmatch:
//
//	go run ./testdata/dumper -dir testdata/go1.26
//	GOTOOLCHAIN=go1.27.3 go run ./testdata/dumper -dir testdata/go1.27
//
// For labels in the text GODEBUG=tracebacklabels=1 must be set. With -crash it panics instead, which with
// GOTRACEBACK=system prints the crash form.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

func main() {
	dir := flag.String("dir", ".", "folder to write to")
	crash := flag.Bool("crash", false, "panic instead of writing")
	flag.Parse()
	if err := run(*dir, *crash); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type queue[T any] struct {
	mu    sync.Mutex
	items chan T
}

func (q *queue[T]) get() T { return <-q.items }

func (q *queue[T]) locked() {
	q.mu.Lock()
	defer q.mu.Unlock()
}

func run(dir string, crash bool) error {
	q := &queue[int]{items: make(chan int)}
	q.mu.Lock()
	var rw sync.RWMutex
	rw.Lock()
	var wait sync.WaitGroup
	wait.Add(1)
	cond := sync.NewCond(new(sync.Mutex))
	var none chan int
	start := func(name string, f func()) {
		labels := pprof.Labels("name", name, "quoted \"key\"", "value with ] and }: and \\")
		pprof.Do(context.Background(), labels, func(context.Context) { go f() })
	}
	for range 5 {
		start("receive", func() { q.get() })
	}
	go q.locked()
	go func() { q.items <- 1; q.items <- 2 }()
	start("nil receive", func() { <-none })
	start("nil send", func() { none <- 1 })
	start("no cases", func() { select {} })
	start("select", func() {
		select {
		case <-q.items:
		case <-none:
		}
	})
	start("sleep", func() { time.Sleep(time.Hour) })
	start("read lock", rw.RLock)
	start("wait group", wait.Wait)
	wait.Go(func() { deep(150, q) })
	start("cond", func() {
		cond.L.Lock()
		cond.Wait()
	})
	start("locked to thread", func() {
		runtime.LockOSThread()
		<-none
	})
	r, _, err := os.Pipe()
	if err != nil {
		return err
	}
	start("IO", func() { _, _ = r.Read(make([]byte, 1)) })
	time.Sleep(200 * time.Millisecond) // until all have stopped
	if crash {
		panic("boom")
	}
	return write(dir)
}

func deep(n int, q *queue[int]) {
	if n == 0 {
		q.get()
		return
	}
	deep(n-1, q)
}

func write(dir string) error {
	profiles := []struct {
		file  string
		name  string
		debug int
	}{
		{"debug2.txt", "goroutine", 2},
		{"debug1.txt", "goroutine", 1},
		{"debug0.pb.gz", "goroutine", 0},
		{"goroutineleak.pb.gz", "goroutineleak", 0},
		{"goroutineleak.debug1.txt", "goroutineleak", 1},
	}
	for _, p := range profiles {
		profile := pprof.Lookup(p.name)
		if profile == nil {
			continue
		}
		var b bytes.Buffer
		if err := profile.WriteTo(&b, p.debug); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, p.file), b.Bytes(), 0o600); err != nil {
			return err
		}
	}
	if pprof.Lookup("goroutineleak") == nil {
		return nil
	}
	// The leak profile has marked goroutines, which text dumps show from then on.
	buf := make([]byte, 1<<20)
	return os.WriteFile(filepath.Join(dir, "leaked.debug2.txt"), buf[:runtime.Stack(buf, true)], 0o600)
}
