package probes_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakguard/leakguard/probes"
)

// find gives the reading of a resource; ok is false when there is none.
func find(t *testing.T, p probes.Probe, resource string) (r probes.Reading, ok bool) {
	t.Helper()
	for _, r = range p.Read(t.Context(), nil) {
		if r.Resource == resource {
			return r, true
		}
	}
	return probes.Reading{}, false
}

// TestBlockedFinalizer has one finalizer that does not return: no other one runs, and all their objects stay.
func TestBlockedFinalizer(t *testing.T) {
	p := probes.NewProcess()
	entered, release := make(chan struct{}), make(chan struct{})
	var ran sync.WaitGroup
	finalized := func(f func(*[4096]byte)) {
		ran.Add(1)
		runtime.SetFinalizer(new([4096]byte), func(b *[4096]byte) {
			defer ran.Done()
			f(b)
		})
	}
	finalized(func(*[4096]byte) {
		close(entered)
		<-release
	})
	runtime.GC()
	<-entered
	for range 100 {
		finalized(func(*[4096]byte) {})
	}
	runtime.GC()
	runtime.GC()
	for read := range 32 {
		r, ok := find(t, p, "finalizers that wait")
		if !ok || r.Count < 100 {
			t.Fatalf("read %d: %v finalizers wait, want at least the 100", read, r.Count)
		}
		if want := read >= 29; r.Leaked != want {
			t.Errorf("read %d: leaked %v, want %v", read, r.Leaked, want)
		}
	}
	close(release)
	ran.Wait()
	for { // the runtime counts them a batch at a time
		r, _ := find(t, p, "finalizers that wait")
		if r.Count > 0 {
			runtime.Gosched()
			continue
		}
		if r.Leaked {
			t.Error("leaked although none waits")
		}
		return
	}
}

// TestBlockedCleanup has cleanups that do not return, more than the runtime runs at once: no other one runs. Before and after
// that each ends.
func TestBlockedCleanup(t *testing.T) {
	p := probes.NewProcess()
	const blocking, others = 64, 500 // the runtime runs a quarter of GOMAXPROCS at once, at least one
	if n := runtime.GOMAXPROCS(0) / 4; n > blocking {
		t.Fatalf("%d cleanups do not block %d", blocking, n)
	}
	var ran sync.WaitGroup
	cleaned := func(n int, f func()) {
		ran.Add(n)
		for range n {
			runtime.AddCleanup(new([4096]byte), func(f func()) {
				defer ran.Done()
				f()
			}, f)
		}
		runtime.GC()
	}
	const reads = 40
	ends := func(when string) {
		for read := range reads {
			cleaned(1, func() {})
			ran.Wait()
			if r, ok := find(t, p, "cleanups that wait"); !ok || r.Leaked {
				t.Errorf("%s, read %d: got %+v (there: %t), want one that is not leaked", when, read, r, ok)
			}
		}
	}
	ends("before")
	entered, release := make(chan struct{}, blocking), make(chan struct{})
	cleaned(blocking, func() {
		entered <- struct{}{}
		<-release
	})
	<-entered
	cleaned(others, func() {})
	leaked := false
	for range reads {
		r, ok := find(t, p, "cleanups that wait")
		if !ok || r.Count < others {
			t.Fatalf("%v cleanups wait, want at least the %d", r.Count, others)
		}
		if leaked = r.Leaked; leaked && (r.Reason == "" || r.Advice == "") {
			t.Errorf("got %+v, want a reason and an advice", r)
		}
	}
	if !leaked {
		t.Errorf("after %d reads nothing is leaked", reads)
	}
	close(release)
	ran.Wait()
	ends("after")
}

func TestCreatedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := probes.NewProcess()
		if _, ok := find(t, p, "goroutines created a minute"); ok {
			t.Error("the first read gives a rate")
		}
		time.Sleep(time.Minute)
		before, _ := find(t, p, "goroutines created a minute")
		var wg sync.WaitGroup
		for range 6000 {
			wg.Go(func() {})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		after, ok := find(t, p, "goroutines created a minute")
		if !ok || after.Count < 6000 || before.Count >= 6000 {
			t.Errorf("%v then %v goroutines a minute, want 6000 more", before.Count, after.Count)
		}
	})
}

func TestThreads(t *testing.T) {
	if r, ok := find(t, probes.NewProcess(), "threads"); !ok || r.Count < 1 || r.Reason == "" || r.Advice == "" {
		t.Errorf("%+v, %v, want at least this one, a reason and an advice", r, ok)
	}
}
