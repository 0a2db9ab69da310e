package leaktest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/leakguard/leakguard/leakguard/leaktest"
	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// goroutine is one goroutine as a dump shows it: what it waits for, its functions, leaf first, and its creator.
type goroutine struct {
	wait    string
	stack   []string
	creator string
}

func (g goroutine) leak() leaktest.Leak {
	l := leaktest.Leak{ID: 1, WaitReason: g.wait, CreatedBy: frame.Frame{Function: g.creator}}
	for _, f := range g.stack {
		l.Stack = append(l.Stack, frame.Frame{Function: f})
	}
	return l
}

// passes reports whether the default ignores let n goroutines pass.
func passes(t *testing.T, g goroutine, n int, opts ...leaktest.Option) bool {
	t.Helper()
	left, err := leaktest.Filter(slices.Repeat([]leaktest.Leak{g.leak()}, n), nil, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return len(left) == 0
}

// packCases has for each entry of the pack a goroutine that it lets pass, and ones that are near to it and must not pass.
func packCases() map[string]struct {
	is  goroutine
	not []goroutine
} {
	const (
		poll   = "internal/poll.runtime_pollWait"
		ginkgo = "github.com/onsi/ginkgo/v2/internal"
		h2     = "golang.org/x/net/http2."
		h2std  = "net/http/internal/http2."
		queue  = "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue."
		certs  = "k8s.io/client-go/transport.(*dynamicClientCert)."
	)
	own := goroutine{"select", []string{"example.com/app.(*Server).loop"}, "example.com/app.Start"}
	started := func(by string) goroutine { return goroutine{"chan receive", []string{"example.com/app.loop"}, by} }
	return map[string]struct {
		is  goroutine
		not []goroutine
	}{
		"LT-testing-test":          {goroutine{"chan receive", []string{"testing.(*T).Parallel", "example.com/app.TestX", "testing.tRunner"}, "testing.(*T).Run"}, []goroutine{started("example.com/app.TestX"), started("testing.tRunner")}},
		"LT-testing-main":          {goroutine{"chan receive", []string{"testing.(*T).Run", "testing.runTests", "testing.(*M).Run", "example.com/app.TestMain"}, ""}, []goroutine{started("example.com/app.TestMain")}},
		"LT-testing-main-go":       {goroutine{"chan receive", []string{"example.com/app.TestMain", "main.main"}, ""}, []goroutine{started("main.main")}},
		"LT-testing-benchmark":     {goroutine{"chan receive", []string{"testing.(*B).launch"}, "testing.(*B).doBench"}, []goroutine{started("testing.(*B).launch")}},
		"LT-testing-benchmark-run": {goroutine{"chan receive", []string{"testing.(*B).run1.func1"}, "testing.(*B).run1"}, []goroutine{started("testing.(*B).run1")}},
		"LT-testing-fuzz":          {goroutine{"chan receive", []string{"testing.fRunner"}, "testing.runFuzzTests"}, []goroutine{started("testing.fRunner")}},
		"LT-testing-alarm":         {goroutine{"running", []string{"testing.(*M).startAlarm.func1"}, "time.goFunc"}, []goroutine{started("time.goFunc")}},
		"LT-testing-example":       {goroutine{"IO wait", []string{"internal/poll.runtime_pollWait", "io.Copy", "testing.runExample.func1"}, "testing.runExample"}, []goroutine{started("testing.runExample")}},
		"LT-testing-fuzz-worker":   {goroutine{"select", []string{"internal/fuzz.CoordinateFuzzing.func5"}, "internal/fuzz.CoordinateFuzzing"}, []goroutine{started("internal/fuzz.CoordinateFuzzing")}},
		"LT-testing-fuzz-signals":  {goroutine{"select", []string{"internal/fuzz.(*workerServer).serve.func1"}, ""}, []goroutine{started("internal/fuzz.(*workerServer).serve")}},
		"LT-signal-loop":           {goroutine{"syscall", []string{"os/signal.signal_recv", "os/signal.loop"}, "os/signal.Notify.func1.1"}, []goroutine{started("os/signal.Notify")}},
		"LT-signal-mask":           {goroutine{"select", []string{"runtime.ensureSigM.func1"}, "runtime.ensureSigM"}, []goroutine{started("runtime.main")}},
		"LT-trace-reader":          {goroutine{"trace reader (blocked)", []string{"runtime/trace.Start.func1"}, "runtime/trace.Start"}, []goroutine{started("runtime/trace.Start")}},
		"LT-flight-recorder":       {goroutine{"trace reader (blocked)", []string{"runtime/trace.(*traceMultiplexer).startLocked.func1"}, ""}, []goroutine{started("runtime/trace.(*FlightRecorder).Start")}},
		"LT-cpu-profile":           {goroutine{"sleep", []string{"time.Sleep", "runtime/pprof.profileWriter"}, "runtime/pprof.StartCPUProfile"}, []goroutine{started("runtime/pprof.StartCPUProfile")}},
		"LT-finalizers":            {goroutine{"finalizer wait", []string{"runtime.runFinalizers"}, "runtime.createfing"}, []goroutine{{"chan receive", []string{"example.com/app.release", "runtime.runFinalizers"}, "runtime.createfing"}}},
		"LT-cleanups":              {goroutine{"cleanup wait", []string{"runtime.runCleanups"}, ""}, []goroutine{{"chan receive", []string{"example.com/app.release", "runtime.runCleanups"}, ""}}},
		"LT-klog-flush":            {goroutine{"select", []string{"k8s.io/klog/v2.(*flushDaemon).run.func1"}, "k8s.io/klog/v2.(*flushDaemon).run"}, []goroutine{{"select", []string{"k8s.io/klog/v2.(*loggingT).exit"}, "example.com/app.Start"}, started("k8s.io/klog/v2.(*flushDaemon).run")}},
		"LT-klog-flush-v1":         {goroutine{"chan receive", []string{"k8s.io/klog.(*loggingT).flushDaemon"}, "k8s.io/klog.init.0"}, []goroutine{started("k8s.io/klog.init.0")}},
		"LT-klog-flush-v2-first":   {goroutine{"chan receive", []string{"k8s.io/klog/v2.(*loggingT).flushDaemon"}, "k8s.io/klog/v2.init.0"}, []goroutine{started("k8s.io/klog/v2.init.0")}},
		"LT-glog-flush":            {goroutine{"chan receive", []string{"github.com/golang/glog.(*fileSink).flushDaemon"}, "github.com/golang/glog.init.0"}, []goroutine{started("github.com/golang/glog.init.0")}},
		"LT-opencensus-worker":     {goroutine{"select", []string{"go.opencensus.io/stats/view.(*worker).start"}, "go.opencensus.io/stats/view.init.0"}, []goroutine{{"select", []string{"go.opencensus.io/stats/view.(*worker).start"}, "go.opencensus.io/stats/view.NewMeter"}}},
		"LT-http2-shared":          {goroutine{"IO wait", []string{poll, h2 + "(*ClientConn).readLoop"}, h2 + "(*Transport).newClientConn"}, []goroutine{{"select", []string{h2 + "(*clientStream).doRequest"}, h2 + "(*ClientConn).roundTrip"}, {"sync.Cond.Wait", []string{h2 + "(*pipe).Read", "k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive"}, "k8s.io/apimachinery/pkg/watch.NewStreamWatcher"}}},
		"LT-http2-shared-std":      {goroutine{"IO wait", []string{poll, h2std + "(*ClientConn).readLoop"}, h2std + "(*Transport).newClientConn"}, []goroutine{{"select", []string{h2std + "(*clientStream).doRequest"}, ""}, {"select", []string{"net/http.(*persistConn).readLoop"}, "net/http.(*Transport).dialConn"}, {"IO wait", []string{poll, "net/http.(*persistConn).readLoop"}, "net/http.(*Transport).dialConn"}}},
		"LT-client-go-cert":        {goroutine{"chan receive (nil chan)", []string{certs + "run"}, "k8s.io/client-go/transport.(*tlsTransportCache).get"}, []goroutine{{"chan receive", []string{certs + "run"}, "example.com/app.Start"}}},
		"LT-client-go-cert-worker": {goroutine{"sync.Cond.Wait", []string{"k8s.io/client-go/util/workqueue.(*Typed[...]).Get", certs + "processNextWorkItem", certs + "runWorker"}, certs + "run"}, []goroutine{{"select", []string{"k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"}, "k8s.io/client-go/util/workqueue.newDelayingQueue"}}},
		"LT-signal-handler":        {goroutine{"chan receive", []string{"sigs.k8s.io/controller-runtime/pkg/manager/signals.SetupSignalHandler.func1"}, "sigs.k8s.io/controller-runtime/pkg/manager/signals.SetupSignalHandler"}, []goroutine{{"chan receive", []string{"sigs.k8s.io/controller-runtime/pkg/manager.(*controllerManager).Start.func1"}, ""}}},
		"LT-priority-queue":        {goroutine{"chan send", []string{queue + "(*priorityqueue[...]).handleReadyItems.func1.1", "github.com/google/btree.(*BTreeG[...]).Ascend", queue + "(*priorityqueue[...]).handleReadyItems"}, queue + "New[...]"}, []goroutine{{"select", []string{queue + "(*priorityqueue[...]).handleReadyItems"}, queue + "New[...]"}, {"select", []string{queue + "(*priorityqueue[...]).GetWithPriority"}, "example.com/app.Start"}}},
		"LT-envtest-process":       {goroutine{"syscall", []string{"os/exec.(*Cmd).Wait", "sigs.k8s.io/controller-runtime/pkg/internal/testing/process.(*State).Start.func1"}, ""}, []goroutine{{"syscall", []string{"os/exec.(*Cmd).Wait", "example.com/app.run"}, ""}}},
		"LT-ginkgo-node":           {goroutine{"select", []string{"example.com/app.init.func1", ginkgo + ".(*Suite).runNode.func3"}, ginkgo + ".(*Suite).runNode"}, []goroutine{started(ginkgo + ".(*Suite).runNode")}},
		"LT-ginkgo-interrupts":     {goroutine{"select", []string{ginkgo + "/interrupt_handler.(*InterruptHandler).registerForInterrupts.func2"}, ""}, []goroutine{started(ginkgo + "/interrupt_handler.NewInterruptHandler")}},
		"LT-ginkgo-progress":       {goroutine{"select", []string{ginkgo + ".RegisterForProgressSignal.func1"}, ""}, []goroutine{started(ginkgo + ".RegisterForProgressSignal")}},
		"LT-ginkgo-output":         {goroutine{"chan receive", []string{ginkgo + ".(*genericOutputInterceptor).ResumeIntercepting.func1"}, ""}, []goroutine{started(ginkgo + ".(*genericOutputInterceptor).ResumeIntercepting")}},
		"LT-ginkgo-output-pipe":    {goroutine{"chan receive", []string{ginkgo + ".startPipeFactory"}, ""}, []goroutine{started(ginkgo + ".startPipeFactory")}},
		"LT-ginkgo-rpc":            {goroutine{"IO wait", []string{poll, "net/rpc.(*Client).input"}, "net/rpc.NewClientWithCodec"}, []goroutine{{"IO wait", []string{poll, "net/rpc.(*Client).input"}, "example.com/app.dial"}, own}},
	}
}

func TestPack(t *testing.T) {
	cases := packCases()
	for _, e := range leaktest.Pack() {
		t.Run(e.ID, func(t *testing.T) {
			c, ok := cases[e.ID]
			if !ok {
				t.Fatal("the entry has no case")
			}
			if e.Library == "" || e.Versions == "" || e.Reason == "" || e.Function == "" {
				t.Errorf("the entry is not complete: %+v", e)
			}
			if frame.Package(e.Function) == e.Function || !strings.Contains(strings.TrimPrefix(e.Function, frame.Package(e.Function)), ".") {
				t.Errorf("%s is no function: an entry must not cover a package", e.Function)
			}
			if !passes(t, c.is, 1) {
				t.Errorf("%+v does not pass", c.is)
			}
			if e.AtMost > 0 && passes(t, c.is, e.AtMost+1) {
				t.Errorf("%d of %+v pass, want at most %d", e.AtMost+1, c.is, e.AtMost)
			}
			for _, not := range c.not {
				if passes(t, not, 1) {
					t.Errorf("%+v passes, although it is none of the pack's", not)
				}
			}
			always := strings.HasPrefix(e.ID, "LT-testing") || e.Versions == "Go 1.26, 1.27"
			if got := passes(t, c.is, 1, leaktest.WithoutPack()); got != always {
				t.Errorf("WithoutPack lets it pass: %v, want %v", got, always)
			}
		})
	}
	if len(cases) != len(leaktest.Pack()) {
		t.Errorf("%d cases for %d entries", len(cases), len(leaktest.Pack()))
	}
}

// TestPackKlog has klog start its real goroutine inside a test.
func TestPackKlog(t *testing.T) {
	f := runFake("TestInner", func(f *fake) {
		leaktest.VerifyNone(f)
		klog.StartFlushDaemon(time.Hour)
	})
	wantSilence(t, f)
	klog.StopFlushDaemon()
	f = runFake("TestInner", func(f *fake) {
		leaktest.VerifyNone(f, leaktest.WithoutPack(), leaktest.Settle(soon))
		klog.StartFlushDaemon(time.Hour)
	})
	wantFailure(t, f, "k8s.io/klog/v2.(*flushDaemon).run.func1")
	klog.StopFlushDaemon()
}

func TestIgnore(t *testing.T) {
	const pkg = "github.com/leakguard/leakguard/leakguard/leaktest_test"
	tomorrow, yesterday := time.Now().Add(24*time.Hour), time.Now().Add(-24*time.Hour)
	tests := []struct {
		name   string
		option func() leaktest.Option
		passes bool
	}{
		{"function", func() leaktest.Option { return leaktest.IgnoreFunction(pkg+".park", "the test's") }, true},
		{"another function", func() leaktest.Option { return leaktest.IgnoreFunction(pkg+".par", "the test's") }, false},
		{"top", func() leaktest.Option { return leaktest.IgnoreTopFunction(pkg + ".park") }, true},
		{"any", func() leaktest.Option { return leaktest.IgnoreAnyFunction(pkg + ".park") }, true},
		{"creator", func() leaktest.Option { return leaktest.IgnoreCreator(pkg+".startParked", "the test's") }, true},
		{"another creator", func() leaktest.Option { return leaktest.IgnoreCreator(pkg+".parked", "the test's") }, false},
		{"package", func() leaktest.Option {
			return leaktest.Ignore(leaktest.Suppression{Package: pkg, Reason: "the test's"})
		}, true},
		{"regular expression", func() leaktest.Option {
			return leaktest.Ignore(leaktest.Suppression{Regexp: `\.park$`, Reason: "the test's"})
		}, true},
		{"wait reason", func() leaktest.Option {
			return leaktest.Ignore(leaktest.Suppression{WaitReason: "chan receive", Reason: "the test's"})
		}, true},
		{"another wait reason", func() leaktest.Option {
			return leaktest.Ignore(leaktest.Suppression{Function: pkg + ".park", WaitReason: "select", Reason: "the test's"})
		}, false},
		{"rule of the pack", func() leaktest.Option { return leaktest.IgnoreRule("LT-klog-flush", "the test's") }, false},
		{"until tomorrow", func() leaktest.Option {
			return leaktest.Ignore(leaktest.Suppression{Function: pkg + ".park", Until: tomorrow, Reason: "the test's"})
		}, true},
		{"until yesterday", func() leaktest.Option {
			return leaktest.Ignore(leaktest.Suppression{Function: pkg + ".park", Until: yesterday, Reason: "the test's"})
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stop := parked(t)
			f := runFake("TestInner", func(f *fake) {
				leaktest.VerifyNone(f, tt.option(), leaktest.Settle(soon))
				startParked(stop)
			})
			if tt.passes {
				wantSilence(t, f)
				return
			}
			wantFailure(t, f, "left 1 goroutines")
			if tt.name == "until yesterday" {
				wantFailure(t, f, "its suppression (the test's) expired on "+yesterday.Format(time.DateOnly))
			}
		})
	}
}

func startParked(stop <-chan struct{}) { go park(stop) }

func TestIgnoreBuiltinRule(t *testing.T) {
	var rule stackmatch.Rule
	for _, r := range stackmatch.Builtin() {
		if r.ID == "GOR-406" {
			rule = r
		}
	}
	watcher := goroutine{"IO wait", []string{"internal/poll.runtime_pollWait", "github.com/fsnotify/fsnotify.(*inotify).readEvents"}, "github.com/fsnotify/fsnotify.newBackend"}
	if passes(t, watcher, 1) {
		t.Error("a file watcher passes by default")
	}
	if !passes(t, watcher, 1, leaktest.IgnoreRule(rule.ID, "closed by the process")) {
		t.Errorf("a file watcher does not pass with IgnoreRule(%q)", rule.ID)
	}
}

func TestIgnoreCurrent(t *testing.T) {
	stop := parked(t)
	go park(stop)
	for _, tt := range []struct{ before, after bool }{{true, false}, {false, true}} {
		t.Run(fmt.Sprintf("%+v", tt), func(t *testing.T) {
			f := runFake("TestInner", func(f *fake) {
				go park(stop)
				leaktest.VerifyNone(f, leaktest.IgnoreCurrent(), leaktest.Settle(soon))
				if tt.after {
					go park(stop)
				}
			})
			if tt.after {
				wantFailure(t, f, "left 1 goroutines")
				return
			}
			wantSilence(t, f)
		})
	}
}

func TestCleanup(t *testing.T) {
	code := -1
	f := runFake("TestInner", func(f *fake) { leaktest.VerifyNone(f, leaktest.Cleanup(func(c int) { code = c })) })
	wantSilence(t, f)
	if code != 0 {
		t.Errorf("Cleanup was called with %d, want 0", code)
	}
}
