package stackmatch

// familyKind describes goroutines that one thing starts together. The first part names the family.
type familyKind struct {
	name  string
	parts []familyPart
}

// familyPart is one goroutine, or some equal ones, of each unit of a family. Functions are full names without a vendor
// prefix and with "[...]" for type arguments; closures of one count as it.
type familyPart struct {
	perUnit   int
	functions []string
}

// familyKinds is what operators are made of. A group belongs to the first kind in which its part is found.
var familyKinds = []familyKind{
	{"informer event handler", []familyPart{
		{1, []string{"k8s.io/client-go/tools/cache.(*processorListener).run"}},
		{1, []string{"k8s.io/client-go/tools/cache.(*processorListener).pop"}},
	}},
	{"client with certificate rotation", []familyPart{
		{1, []string{"k8s.io/client-go/transport.(*dynamicClientCert).Run", "k8s.io/client-go/transport.(*dynamicClientCert).run"}},
		{1, []string{"k8s.io/client-go/transport.(*dynamicClientCert).runWorker", "k8s.io/client-go/transport.(*dynamicClientCert).processNextWorkItem"}},
		{1, []string{"k8s.io/client-go/util/workqueue.(*delayingType).waitingLoop", "k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"}},
		{2, []string{"k8s.io/client-go/util/workqueue.(*Type).updateUnfinishedWorkLoop", "k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"}},
		{1, []string{"k8s.io/apimachinery/pkg/util/wait.PollImmediateUntil", "k8s.io/apimachinery/pkg/util/wait.PollUntil"}},
		{1, []string{"k8s.io/apimachinery/pkg/util/wait.poller.func1.1", "k8s.io/apimachinery/pkg/util/wait.poller.func1"}},
	}},
	{"informer", []familyPart{
		{1, []string{"k8s.io/client-go/tools/cache.(*sharedIndexInformer).Run", "k8s.io/client-go/tools/cache.(*sharedIndexInformer).RunWithContext"}},
		{1, []string{"k8s.io/client-go/tools/cache.(*sharedProcessor).run"}},
		{1, []string{"k8s.io/client-go/tools/cache.(*controller).Run.func1", "k8s.io/client-go/tools/cache.(*controller).RunWithContext.func1"}},
		{1, []string{"k8s.io/client-go/tools/cache.(*Reflector).startResync"}},
		{1, []string{"k8s.io/client-go/tools/cache.watchHandler", "k8s.io/client-go/tools/cache.handleAnyWatch", "k8s.io/client-go/tools/cache.(*Reflector).watchHandler"}},
		{1, []string{"k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive"}},
		{1, streams},
	}},
	{"watch", []familyPart{
		{1, []string{"k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive"}},
		{1, streams},
	}},
	{"work queue", []familyPart{
		{1, []string{"k8s.io/client-go/util/workqueue.(*delayingType).waitingLoop", "k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"}},
		{1, []string{"k8s.io/client-go/util/workqueue.(*Type).updateUnfinishedWorkLoop", "k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"}},
	}},
	{"priority queue", []familyPart{
		{1, []string{"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.(*priorityqueue[...]).handleWaitingItems", "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.(*priorityqueue[...]).spin"}},
		{1, []string{"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.(*priorityqueue[...]).handleReadyItems"}},
		{1, []string{"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.(*priorityqueue[...]).handleAddBuffer"}},
		{1, []string{"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.(*priorityqueue[...]).logState"}},
		{1, []string{"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.(*priorityqueue[...]).updateUnfinishedWorkLoop"}},
	}},
	{"event broadcaster", []familyPart{
		{1, []string{"k8s.io/apimachinery/pkg/watch.(*Broadcaster).loop"}},
		{2, []string{"k8s.io/client-go/tools/record.(*eventBroadcasterImpl).StartEventWatcher"}},
	}},
	{"gRPC connection", []familyPart{
		{1, []string{"google.golang.org/grpc/internal/transport.(*http2Client).reader"}},
		{1, []string{"google.golang.org/grpc/internal/transport.(*loopyWriter).run", "google.golang.org/grpc/internal/transport.NewHTTP2Client"}},
		{3, []string{"google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run"}},
	}},
	{"HTTP connection", []familyPart{
		{1, []string{"net/http.(*persistConn).readLoop"}},
		{1, []string{"net/http.(*persistConn).writeLoop"}},
	}},
	{"exec stream", []familyPart{
		{1, []string{"github.com/moby/spdystream.(*Connection).shutdown"}},
		{1, []string{"github.com/moby/spdystream.(*Connection).shutdown.func1"}},
		{1, []string{"github.com/moby/spdystream.(*idleAwareFramer).monitor"}},
		{1, []string{"github.com/moby/spdystream.(*Connection).Serve"}},
	}},
}

// streams are the HTTP/2 requests under a watch, in the spellings of golang.org/x/net, of the copy in net/http up to
// Go 1.26, and of that from Go 1.27 on.
var streams = []string{
	"golang.org/x/net/http2.(*clientStream).doRequest",
	"net/http.(*http2clientStream).doRequest",
	"net/http/internal/http2.(*clientStream).doRequest",
}
