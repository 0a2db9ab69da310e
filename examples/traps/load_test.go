package traps_test

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// The load that the articles compare: a thousand events a second of a hundred objects, each of which needs a call of
// something downstream that takes sixteen calls at a time, 20 ms each: less than there are events.
const (
	eventEvery  = time.Millisecond
	objectCount = 100
	callSlots   = 16
	callTime    = 20 * time.Millisecond
)

// downstream is what the handlers call.
type downstream struct{ slots chan struct{} }

func newDownstream() *downstream { return &downstream{slots: make(chan struct{}, callSlots)} }

func (d *downstream) call() {
	d.slots <- struct{}{}
	time.Sleep(callTime)
	<-d.slots
}

// outcome is what became of the events.
type outcome struct {
	mu            sync.Mutex
	latencies     []time.Duration // from the event to the end of the call that made up for it
	running, peak int             // goroutines that handle
}

func (o *outcome) add(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running += n
	o.peak = max(o.peak, o.running)
}

func (o *outcome) handled(events ...time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, at := range events {
		o.latencies = append(o.latencies, time.Since(at))
	}
}

// summary gives the mean latency and the one that 99 of 100 events stay below. It must not be empty.
func (o *outcome) summary() (mean, p99 time.Duration) {
	slices.Sort(o.latencies)
	for _, l := range o.latencies {
		mean += l
	}
	n := len(o.latencies)
	return mean / time.Duration(n), o.latencies[int(math.Ceil(0.99*float64(n)))-1]
}

// handling begins to handle events; stop waits until all are handled.
type handling func(d *downstream, o *outcome) (event func(object int), stop func())

// goHandler starts a goroutine for each event.
func goHandler(d *downstream, o *outcome) (event func(object int), stop func()) {
	var group sync.WaitGroup
	return func(int) {
		at := time.Now()
		o.add(1)
		group.Go(func() {
			defer o.add(-1)
			d.call()
			o.handled(at)
		})
	}, group.Wait
}

// queued puts the object of each event into a workqueue, where it stays one item however many of its events come.
func queued(d *downstream, o *outcome) (event func(object int), stop func()) {
	queue := workqueue.NewTyped[int]()
	var mu sync.Mutex
	waiting := map[int][]time.Time{}
	take := func(object int) []time.Time {
		mu.Lock()
		defer mu.Unlock()
		events := waiting[object]
		delete(waiting, object)
		return events
	}
	var workers sync.WaitGroup
	for range callSlots {
		o.add(1)
		workers.Go(func() {
			defer o.add(-1)
			for object, shut := queue.Get(); !shut; object, shut = queue.Get() {
				events := take(object)
				d.call()
				o.handled(events...)
				queue.Done(object)
			}
		})
	}
	event = func(object int) {
		mu.Lock()
		waiting[object] = append(waiting[object], time.Now())
		mu.Unlock()
		queue.Add(object)
	}
	return event, func() { queue.ShutDown(); workers.Wait() }
}

// BenchmarkLoad is a thousand events a second in real time; a longer run makes what piles up higher:
//
//	go test ./examples/traps -run '^$' -bench Load -benchtime 5s
func BenchmarkLoad(b *testing.B) {
	for _, tt := range []struct {
		name   string
		handle handling
	}{{"go handler()", goHandler}, {"workqueue", queued}} {
		b.Run(tt.name, func(b *testing.B) {
			o := &outcome{}
			event, stop := tt.handle(newDownstream(), o)
			begun, n := time.Now(), 0
			for b.Loop() {
				time.Sleep(time.Until(begun.Add(time.Duration(n) * eventEvery)))
				event(n % objectCount)
				n++
			}
			stop()
			mean, p99 := o.summary()
			b.ReportMetric(mean.Seconds()*1000, "mean-ms")
			b.ReportMetric(p99.Seconds()*1000, "p99-ms")
			b.ReportMetric(float64(o.peak), "peak-goroutines")
		})
	}
}

// TestLoad makes the comparison for three seconds of a clock that nothing else moves.
func TestLoad(t *testing.T) {
	run := func(handle handling) (o *outcome) {
		o = &outcome{}
		synctest.Test(t, func(t *testing.T) {
			event, stop := handle(newDownstream(), o)
			const events = 3000
			for n := range events {
				event(n % objectCount)
				time.Sleep(eventEvery)
			}
			stop()
			if len(o.latencies) != events {
				t.Errorf("%d events were handled, want %d", len(o.latencies), events)
			}
		})
		return o
	}
	started, queue := run(goHandler), run(queued)
	if queue.peak != callSlots || started.peak < 20*queue.peak {
		t.Errorf("peaks are %d goroutines with go handler() and %d with a workqueue, want twenty times the %d workers and more", started.peak, queue.peak, callSlots)
	}
	meanStarted, p99Started := started.summary()
	meanQueue, p99Queue := queue.summary()
	t.Logf("mean, p99, goroutines: go handler() %v, %v, %d; workqueue %v, %v, %d", meanStarted, p99Started, started.peak, meanQueue, p99Queue, queue.peak)
	if meanStarted < 2*meanQueue || p99Started < 2*p99Queue {
		t.Errorf("go handler() takes %v and %v for one of a hundred, a workqueue %v and %v: want twice as long or more", meanStarted, p99Started, meanQueue, p99Queue)
	}
}
