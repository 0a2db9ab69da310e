package leaktest_test

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leakguard/leakguard/leakguard/leaktest"
)

// node is 16 bytes with a pointer.
type node struct {
	next  *node
	value int64
}

func TestVerifyHeapLeaks(t *testing.T) {
	tests := []struct {
		name  string
		leak  func() func(i int)
		bytes string
		opts  []leaktest.Option
	}{
		{"16 bytes", func() func(int) {
			var head *node
			return func(i int) { head = &node{next: head, value: int64(i)} }
		}, "16.0 bytes", nil},
		{"1 KiB", func() func(int) {
			kept := map[int][]byte{}
			return func(i int) { kept[i] = make([]byte, 1024) }
		}, "objects per iteration stay of", nil},
		{"as large as the record of a goroutine", func() func(int) {
			type record struct {
				next *record
				_    [472]byte
			}
			var head *record
			return func(int) { head = &record{next: head} }
		}, "480.0 bytes", nil},
		{"a slice that grows", func() func(int) {
			var kept []int
			return func(i int) { kept = append(kept, i) }
		}, "per iteration, over the last", nil},
		{"a map that grows", func() func(int) {
			kept := map[int]int{}
			return func(i int) { kept[i] = i }
		}, "per iteration, over the last", nil},
		{"one in ten", func() func(int) {
			var head *node
			return func(i int) {
				if i%10 == 0 {
					head = &node{next: head}
				}
			}
		}, "0.10 objects", []leaktest.Option{leaktest.Iterations(400)}}, // so that the process's own objects are few beside it
	}
	before := runtime.MemProfileRate
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := runFake("TestInner", func(f *fake) { leaktest.VerifyHeap(f, tt.leak(), tt.opts...) })
			wantFailure(t, f, tt.bytes, "the live heap grows with every iteration of TestInner")
			if strings.HasSuffix(tt.name, "bytes") || strings.HasSuffix(tt.name, "KiB") {
				wantFailure(t, f, "leaktest_test.TestVerifyHeapLeaks", "heap_test.go:")
			}
		})
	}
	if runtime.MemProfileRate != before {
		t.Errorf("MemProfileRate is %d after it, want %d", runtime.MemProfileRate, before)
	}
}

// clean are functions that keep something, but not more and more.
func clean() map[string]func() func(i int) {
	return map[string]func() func(i int){
		"nothing": func() func(int) { return func(int) {} },
		"garbage": func() func(int) {
			var last []byte
			return func(i int) { last = make([]byte, 16+i%4096); _ = last }
		},
		"cache": func() func(int) {
			cache := map[int]*[256]byte{}
			return func(i int) { cache[i%1500] = new([256]byte) }
		},
		"map to a bound": func() func(int) {
			m := map[int]int{}
			return func(i int) { m[i%3000] = i }
		},
		"pool": func() func(int) {
			pool := sync.Pool{New: func() any { return new([4096]byte) }}
			return func(int) {
				a, b := pool.Get(), pool.Get()
				pool.Put(a)
				pool.Put(b)
			}
		},
		"lazy": func() func(int) {
			var once sync.Once
			var table []*node
			return func(i int) {
				if i == 250 { // in the middle of the first window
					once.Do(func() {
						for range 5000 {
							table = append(table, new(node))
						}
					})
				}
			}
		},
		"ring": func() func(int) {
			ring := make([]*node, 64)
			return func(i int) { ring[i%len(ring)] = &node{value: int64(i)} }
		},
		"fill and clear": func() func(int) {
			m := map[int]*node{}
			return func(i int) {
				m[i] = new(node)
				if len(m) > 700 {
					clear(m)
				}
			}
		},
	}
}

// TestVerifyHeapClean runs clean functions LEAKTEST_HEAP_RUNS times in all, 16 by default, without an alarm.
func TestVerifyHeapClean(t *testing.T) {
	runs := 16
	if s := os.Getenv("LEAKTEST_HEAP_RUNS"); s != "" {
		var err error
		if runs, err = strconv.Atoi(s); err != nil {
			t.Fatalf("LEAKTEST_HEAP_RUNS=%q is no number", s)
		}
	}
	kinds := clean()
	alarms := 0
	for run := 0; run < runs; {
		for name, kind := range kinds {
			run++
			f := runFake("TestInner", func(f *fake) { leaktest.VerifyHeap(f, kind()) })
			if len(f.failures) > 0 {
				alarms++
				t.Errorf("%s: %s", name, f.text())
			}
		}
	}
	t.Logf("%d alarms in %d runs of %d clean kinds", alarms, runs, len(kinds))
}

func TestVerifyHeapRefusesParallel(t *testing.T) {
	f := &fake{name: "TestInner", parallel: true}
	f.run(func(f *fake) { leaktest.VerifyHeap(f, func(int) { t.Error("it was called") }) })
	wantFailure(t, f, leaktest.ErrParallel.Error())
}

func TestVerifyHeapAllowance(t *testing.T) {
	var head *node
	f := runFake("TestInner", func(f *fake) {
		leaktest.VerifyHeap(f, func(int) { head = &node{next: head} }, leaktest.HeapAllowance(20, 1.5))
	})
	wantSilence(t, f)
}

// TestVerifyHeapGoroutines leaks nothing but a goroutine with each call: its record in the runtime is no reserve then.
func TestVerifyHeapGoroutines(t *testing.T) {
	block := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(block)
	f := runFake("TestInner", func(f *fake) {
		leaktest.VerifyHeap(f, func(int) { wg.Go(func() { <-block }) })
	})
	wantFailure(t, f, "the live heap grows with every iteration of TestInner")
}

// TestVerifyHeapReserve runs ever more goroutines at once and waits for them: the runtime keeps their records for the next
// ones, which is no leak of the function. Nor is what a call keeps until the next, what is less than the allowance, or what one
// line has made in many sizes. It runs in a process of its own, for in this one there are records enough.
func TestVerifyHeapReserve(t *testing.T) {
	const inner = "LEAKTEST_HEAP_RESERVE"
	if os.Getenv(inner) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVerifyHeapReserve$", "-test.v")
		cmd.Env = append(os.Environ(), inner+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "records of goroutines were made") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	before := runtime.MemProfileRate
	runtime.MemProfileRate = 1 // the profile has a row for each size
	var sizes [][]byte
	for size := 1 << 16; size >= 8; size /= 2 {
		sizes = append(sizes, make([]byte, size))
	}
	runtime.MemProfileRate = before
	var last, rare []byte
	most := 0
	f := runFake("TestInner", func(f *fake) {
		leaktest.VerifyHeap(f, func(i int) {
			last = make([]byte, 1<<16)
			if i%150 == 0 { // 27 bytes for each of 200 calls
				rare = make([]byte, 5000)
			}
			most = max(most, atOnce(i/4))
		}, leaktest.Iterations(20), leaktest.HeapTime(time.Second), leaktest.HeapAllowance(30, 0.2))
	})
	wantSilence(t, f)
	if most > 100 {
		t.Logf("records of goroutines were made, up to %d", most)
	}
	runtime.KeepAlive(last)
	runtime.KeepAlive(rare)
	runtime.KeepAlive(sizes)
}

// atOnce runs n goroutines at once, waits for them, and gives n. They do not park, which would take a record more.
func atOnce(n int) int {
	var wg sync.WaitGroup
	var release atomic.Bool
	for range n {
		wg.Go(func() {
			for !release.Load() {
				runtime.Gosched()
			}
		})
	}
	release.Store(true)
	wg.Wait()
	return n
}
