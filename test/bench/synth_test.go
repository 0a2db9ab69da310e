package bench_test

import (
	"bytes"
	"fmt"
)

// dump makes a text dump of n goroutines as an operator's debug=2 page prints it, with its usual stacks.
func dump(n int) []byte {
	var b bytes.Buffer
	b.WriteString("goroutine 4711 [running]:\nruntime/pprof.writeGoroutineStacks({0x7d0f20, 0xc00ef5ddd0})\n\t/usr/local/go/src/runtime/pprof/pprof.go:819 +0x6b\n" +
		"net/http.(*conn).serve(0xc00b46af00, {0x7d3e58, 0xc00317ca30})\n\t/usr/local/go/src/net/http/server.go:2067 +0x690\n" +
		"created by net/http.(*Server).Serve in goroutine 124\n\t/usr/local/go/src/net/http/server.go:3464 +0x485\n")
	for i := range n - 1 {
		k := kinds[i%len(kinds)]
		fmt.Fprintf(&b, "\ngoroutine %d [%s", i+5000, k.reason)
		if i%3 > 0 {
			fmt.Fprintf(&b, ", %d minutes", 1+i%60)
		}
		b.WriteString("]:\n")
		for _, f := range k.frames {
			fmt.Fprintf(&b, "%s(0xc%09x, {0x%x, 0xc%09x}, 0x%x?)\n\t%s +0x%x\n", f[0], i*64, 0x18bac98+i, i*128, i, f[1], i%999)
		}
		fmt.Fprintf(&b, "created by %s in goroutine %d\n\t%s +0x1b0\n", k.creator[0], i/7+1, k.creator[1])
	}
	return b.Bytes()
}

type kind struct {
	reason  string
	frames  [][2]string
	creator [2]string
}

const (
	modules = "/go/pkg/mod/"
	std     = "/usr/local/go/src/"
)

var kinds = []kind{
	{"IO wait", [][2]string{
		{"internal/poll.runtime_pollWait", std + "runtime/netpoll.go:351"},
		{"internal/poll.(*pollDesc).wait", std + "internal/poll/fd_poll_runtime.go:84"},
		{"internal/poll.(*pollDesc).waitRead", std + "internal/poll/fd_poll_runtime.go:89"},
		{"internal/poll.(*FD).Read", std + "internal/poll/fd_unix.go:165"},
		{"net.(*netFD).Read", std + "net/fd_posix.go:55"},
		{"net.(*conn).Read", std + "net/net.go:196"},
		{"crypto/tls.(*atLeastReader).Read", std + "crypto/tls/conn.go:816"},
		{"bytes.(*Buffer).ReadFrom", std + "bytes/buffer.go:217"},
		{"crypto/tls.(*Conn).readFromUntil", std + "crypto/tls/conn.go:838"},
		{"crypto/tls.(*Conn).Read", std + "crypto/tls/conn.go:1385"},
		{"net/http.(*persistConn).Read", std + "net/http/transport.go:2125"},
		{"bufio.(*Reader).Peek", std + "bufio/bufio.go:152"},
		{"net/http.(*persistConn).readLoop", std + "net/http/transport.go:2278"},
	}, [2]string{"net/http.(*Transport).dialConn", std + "net/http/transport.go:1943"}},
	{"select", [][2]string{
		{"net/http.(*persistConn).writeLoop", std + "net/http/transport.go:2600"},
	}, [2]string{"net/http.(*Transport).dialConn", std + "net/http/transport.go:1944"}},
	{"sync.Cond.Wait", [][2]string{
		{"sync.runtime_notifyListWait", std + "runtime/sema.go:617"},
		{"sync.(*Cond).Wait", std + "sync/cond.go:71"},
		{"k8s.io/client-go/util/workqueue.(*Typed[...]).Get", modules + "k8s.io/client-go@v0.35.0/util/workqueue/queue.go:277"},
		{"sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).processNextWorkItem", modules + "sigs.k8s.io/controller-runtime@v0.23.3/pkg/internal/controller/controller.go:430"},
		{"sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Start.func2.2", modules + "sigs.k8s.io/controller-runtime@v0.23.3/pkg/internal/controller/controller.go:295"},
	}, [2]string{"sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Start.func2", modules + "sigs.k8s.io/controller-runtime@v0.23.3/pkg/internal/controller/controller.go:291"}},
	{"chan receive", [][2]string{
		{"k8s.io/client-go/tools/cache.(*processorListener).run.func1", modules + "k8s.io/client-go@v0.35.0/tools/cache/shared_informer.go:1087"},
		{"k8s.io/apimachinery/pkg/util/wait.BackoffUntil.func1", modules + "k8s.io/apimachinery@v0.35.0/pkg/util/wait/backoff.go:233"},
		{"k8s.io/apimachinery/pkg/util/wait.BackoffUntilWithContext", modules + "k8s.io/apimachinery@v0.35.0/pkg/util/wait/backoff.go:234"},
		{"k8s.io/apimachinery/pkg/util/wait.JitterUntil", modules + "k8s.io/apimachinery@v0.35.0/pkg/util/wait/backoff.go:209"},
		{"k8s.io/client-go/tools/cache.(*processorListener).run", modules + "k8s.io/client-go@v0.35.0/tools/cache/shared_informer.go:1081"},
		{"k8s.io/apimachinery/pkg/util/wait.(*Group).Start.func1", modules + "k8s.io/apimachinery@v0.35.0/pkg/util/wait/wait.go:72"},
	}, [2]string{"k8s.io/apimachinery/pkg/util/wait.(*Group).Start", modules + "k8s.io/apimachinery@v0.35.0/pkg/util/wait/wait.go:70"}},
	{"chan send", [][2]string{
		{"example.com/operator/internal/controller.(*Reconciler).notify", "/src/internal/controller/notify.go:57"},
		{"example.com/operator/internal/controller.(*Reconciler).Reconcile.func1", "/src/internal/controller/reconciler.go:88"},
	}, [2]string{"example.com/operator/internal/controller.(*Reconciler).Reconcile", "/src/internal/controller/reconciler.go:86"}},
}
