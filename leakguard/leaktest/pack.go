package leaktest

import (
	"slices"
	"strings"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Entry is one kind of goroutine that belongs to the process, not to a test, and that nobody can stop. Entries are narrow:
// a function, never a package, and never something that its user was to close.
type Entry struct {
	// ID names the entry for ever: "LT-klog-flush".
	ID string
	// Library is the import path it belongs to, and Versions those in which it was found.
	Library, Versions string
	// Function is on the stack; closures of it count.
	Function string
	// Outermost has Function be the function that the goroutine was started for.
	Outermost bool
	// Creator is the function with the go statement, or holds its closure; empty for any. Goroutine profiles do not tell it.
	Creator string
	// WaitReasons are the states it may be in; nil for any.
	WaitReasons []string
	// Without are functions that must not be on the stack.
	Without []string
	// AtMost is how many of them the check of one test ignores; 0 means any number.
	AtMost int
	// Reason says why it is no leak.
	Reason string
}

// matches reports whether the entry describes a goroutine. A creator that is not known does not fit.
func (e *Entry) matches(g *stackmatch.Group) bool {
	if len(e.WaitReasons) > 0 && !slices.Contains(e.WaitReasons, g.WaitReason) {
		return false
	}
	if e.Creator != "" && !isOrIn(g.CreatedBy.Function, e.Creator) {
		return false
	}
	if slices.ContainsFunc(g.Stack, func(f frame.Frame) bool {
		return slices.ContainsFunc(e.Without, func(not string) bool { return isOrIn(f.Function, not) })
	}) {
		return false
	}
	if e.Outermost {
		return isOrIn(frame.Root(g.Stack).Function, e.Function)
	}
	return slices.ContainsFunc(g.Stack, func(f frame.Frame) bool { return isOrIn(f.Function, e.Function) })
}

// isOrIn reports whether a function is the named one or a closure in it.
func isOrIn(function, name string) bool {
	rest, ok := strings.CutPrefix(plain(function), name)
	return ok && (rest == "" || rest[0] == '.' && !strings.HasPrefix(rest, ".("))
}

// Pack gives the ignore pack: what a test may leave behind by default. The slice is the caller's.
//
// Libraries that need no entry, since all that they start ends when it is closed, and so is a leak when it does not: gRPC,
// database/sql, zap, OpenTelemetry and the informers, queues and event broadcasters of client-go. Their goroutines end a
// little after the call that stops them, which the settle time covers.
func Pack() []Entry {
	return slices.Concat(testingEntries(), runtimeEntries(), libraryEntries(), kubernetesEntries(), ginkgoEntries())
}

// alwaysIgnored are the entries that [WithoutPack] leaves on.
func alwaysIgnored() []Entry { return slices.Concat(testingEntries(), runtimeEntries()) }

func testingEntries() []Entry {
	const why = "a test's own goroutine, or package testing's; it is alive while tests are"
	return []Entry{
		{ID: "LT-testing-test", Library: "testing", Versions: "Go 1.26, 1.27", Function: "testing.tRunner", Outermost: true, Reason: why},
		{ID: "LT-testing-main", Library: "testing", Versions: "Go 1.26, 1.27", Function: "testing.(*M).Run", Reason: why},
		{ID: "LT-testing-main-go", Library: "testing", Versions: "Go 1.26, 1.27", Function: "main.main", Outermost: true, Reason: "the main goroutine"},
		{ID: "LT-testing-benchmark", Library: "testing", Versions: "Go 1.26, 1.27", Function: "testing.(*B).launch", Outermost: true, Reason: why},
		{ID: "LT-testing-benchmark-run", Library: "testing", Versions: "Go 1.26, 1.27", Function: "testing.(*B).run1", Outermost: true, Reason: why},
		{ID: "LT-testing-fuzz", Library: "testing", Versions: "Go 1.26, 1.27", Function: "testing.fRunner", Outermost: true, Reason: why},
		{ID: "LT-testing-alarm", Library: "testing", Versions: "Go 1.26, 1.27", Function: "testing.(*M).startAlarm", Outermost: true, Reason: why},
		{ID: "LT-testing-example", Library: "testing", Versions: "Go 1.26, 1.27", Function: "testing.runExample", Outermost: true, Reason: "keeps the output of an example while it runs"},
		{ID: "LT-testing-fuzz-worker", Library: "internal/fuzz", Versions: "Go 1.26, 1.27", Function: "internal/fuzz.CoordinateFuzzing", Reason: why},
		{ID: "LT-testing-fuzz-signals", Library: "internal/fuzz", Versions: "Go 1.26, 1.27", Function: "internal/fuzz.(*workerServer).serve", Reason: why},
	}
}

func runtimeEntries() []Entry {
	return []Entry{
		{
			ID: "LT-signal-loop", Library: "os/signal", Versions: "Go 1.26, 1.27", Function: "os/signal.loop", Outermost: true,
			Reason: "started once by the first signal.Notify and never stopped",
		},
		{
			ID: "LT-signal-mask", Library: "runtime", Versions: "Go 1.26, 1.27", Function: "runtime.ensureSigM", Outermost: true,
			Reason: "started once by the first signal.Notify and never stopped",
		},
		{
			ID: "LT-trace-reader", Library: "runtime/trace", Versions: "Go 1.26, 1.27", Function: "runtime/trace.Start", Outermost: true,
			Reason: "go test -trace writes the execution trace while tests run",
		},
		{
			ID: "LT-flight-recorder", Library: "runtime/trace", Versions: "Go 1.26, 1.27", Function: "runtime/trace.(*traceMultiplexer).startLocked", Outermost: true,
			Reason: "go test -trace writes the execution trace while tests run",
		},
		{
			ID: "LT-cpu-profile", Library: "runtime/pprof", Versions: "Go 1.26, 1.27", Function: "runtime/pprof.profileWriter", Outermost: true,
			Reason: "go test -cpuprofile writes the profile while tests run",
		},
		{
			ID: "LT-finalizers", Library: "runtime", Versions: "Go 1.26, 1.27", Function: "runtime.runFinalizers", Outermost: true,
			WaitReasons: []string{"finalizer wait"}, Reason: "the runtime's goroutine for finalizers, idle",
		},
		{
			ID: "LT-cleanups", Library: "runtime", Versions: "Go 1.26, 1.27", Function: "runtime.runCleanups", Outermost: true,
			WaitReasons: []string{"cleanup wait"}, Reason: "the runtime's goroutine for cleanups, idle",
		},
	}
}

func libraryEntries() []Entry {
	return []Entry{
		{
			ID: "LT-klog-flush", Library: "k8s.io/klog/v2", Versions: "v2.4 to v2.140", Function: "k8s.io/klog/v2.(*flushDaemon).run", Outermost: true,
			Creator: "k8s.io/klog/v2.(*flushDaemon).run", Reason: "klog flushes every five seconds for as long as the process lives",
		},
		{
			ID: "LT-klog-flush-v1", Library: "k8s.io/klog", Versions: "v0, v1", Function: "k8s.io/klog.(*loggingT).flushDaemon", Outermost: true,
			Creator: "k8s.io/klog.init.0", Reason: "klog flushes every five seconds for as long as the process lives",
		},
		{
			ID: "LT-klog-flush-v2-first", Library: "k8s.io/klog/v2", Versions: "v2.0 to v2.3", Function: "k8s.io/klog/v2.(*loggingT).flushDaemon", Outermost: true,
			Creator: "k8s.io/klog/v2.init.0", Reason: "klog flushes every five seconds for as long as the process lives",
		},
		{
			ID: "LT-glog-flush", Library: "github.com/golang/glog", Versions: "v1.0 to v1.2", Function: "github.com/golang/glog.(*fileSink).flushDaemon", Outermost: true,
			Creator: "github.com/golang/glog.init.0", Reason: "glog flushes for as long as the process lives",
		},
		{
			ID: "LT-opencensus-worker", Library: "go.opencensus.io", Versions: "v0.19 to v0.24", Function: "go.opencensus.io/stats/view.(*worker).start", Outermost: true,
			Creator: "go.opencensus.io/stats/view.init.0", Reason: "started by importing the package and never stopped",
		},
	}
}

func kubernetesEntries() []Entry {
	idle := []string{"IO wait"}
	const certificate = "watches the file of a client certificate for a cached transport; its stop channel is wait.NeverStop"
	const shared = "an idle connection of a transport that client-go shares between clients of one configuration and keeps open; " +
		"a third one in a single test is no sharing any more"
	return []Entry{
		{
			ID: "LT-http2-shared", Library: "golang.org/x/net/http2", Versions: "v0.40 to v0.50", Function: "golang.org/x/net/http2.(*ClientConn).readLoop", Outermost: true,
			WaitReasons: idle, AtMost: 2, Reason: shared,
		},
		{
			ID: "LT-http2-shared-std", Library: "net/http", Versions: "Go 1.27", Function: "net/http/internal/http2.(*ClientConn).readLoop", Outermost: true,
			WaitReasons: idle, AtMost: 2, Reason: shared,
		},
		{
			ID: "LT-client-go-cert", Library: "k8s.io/client-go/transport", Versions: "v0.35", Function: "k8s.io/client-go/transport.(*dynamicClientCert).run", Outermost: true,
			Creator: "k8s.io/client-go/transport.(*tlsTransportCache).get", Reason: certificate,
		},
		{
			ID: "LT-client-go-cert-worker", Library: "k8s.io/client-go/transport", Versions: "v0.27 to v0.35", Function: "k8s.io/client-go/transport.(*dynamicClientCert).runWorker",
			Reason: certificate,
		},
		{
			ID: "LT-signal-handler", Library: "sigs.k8s.io/controller-runtime", Versions: "v0.15 to v0.25",
			Function: "sigs.k8s.io/controller-runtime/pkg/manager/signals.SetupSignalHandler", Outermost: true,
			Reason: "SetupSignalHandler may be called once in a process and waits for its signal",
		},
		{
			ID: "LT-priority-queue", Library: "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue", Versions: "v0.23",
			Function: "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.(*priorityqueue).handleReadyItems", Outermost: true,
			Creator: "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.New", WaitReasons: []string{"chan send"},
			Reason: "a queue that is shut down while it hands an item to a worker waits for ever if the worker has just returned; mended in v0.25",
		},
		{
			ID: "LT-envtest-process", Library: "sigs.k8s.io/controller-runtime/pkg/envtest", Versions: "v0.15 to v0.25",
			Function: "sigs.k8s.io/controller-runtime/pkg/internal/testing/process.(*State).Start", Outermost: true,
			Reason: "waits for a process of the test control plane while it runs",
		},
	}
}

func ginkgoEntries() []Entry {
	const versions = "v2.0 to v2.27"
	const ginkgo = "github.com/onsi/ginkgo/v2/internal"
	return []Entry{
		{ID: "LT-ginkgo-node", Library: "github.com/onsi/ginkgo/v2", Versions: versions, Function: ginkgo + ".(*Suite).runNode", Outermost: true, Reason: "runs a node of the suite"},
		{ID: "LT-ginkgo-interrupts", Library: "github.com/onsi/ginkgo/v2", Versions: versions, Function: ginkgo + "/interrupt_handler.(*InterruptHandler).registerForInterrupts", Outermost: true, Reason: "waits for an interrupt while the suite runs"},
		{ID: "LT-ginkgo-progress", Library: "github.com/onsi/ginkgo/v2", Versions: versions, Function: ginkgo + ".RegisterForProgressSignal", Outermost: true, Reason: "waits for the progress signal while the suite runs"},
		{ID: "LT-ginkgo-output", Library: "github.com/onsi/ginkgo/v2", Versions: versions, Function: ginkgo + ".(*genericOutputInterceptor).ResumeIntercepting", Outermost: true, Reason: "keeps the output of a parallel process"},
		{ID: "LT-ginkgo-output-pipe", Library: "github.com/onsi/ginkgo/v2", Versions: versions, Function: ginkgo + ".startPipeFactory", Outermost: true, Reason: "keeps the output of a parallel process"},
		{ID: "LT-ginkgo-rpc", Library: "github.com/onsi/ginkgo/v2", Versions: versions, Function: "net/rpc.(*Client).input", Outermost: true, Creator: "net/rpc.NewClientWithCodec", AtMost: 1, Reason: "a parallel process of Ginkgo talks to the command over one connection"},
	}
}
