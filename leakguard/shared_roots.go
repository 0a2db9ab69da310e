package leakguard

import "strings"

// sharedRoots are functions whose goroutines serve the whole process although a reconcile may happen to start them:
// pooled connections and the parts of a lazily started informer. They are matched by prefix up to a type argument's "[".
//
// StreamWatcher.receive and clientStream.doRequest are not here: they are also the leaked watch.
var sharedRoots = [...]string{
	"net/http.(*persistConn).readLoop",
	"net/http.(*persistConn).writeLoop",
	"net/http.(*Transport).dialConnFor",
	"net/http.(*Transport).startDialConnForLocked",
	"golang.org/x/net/http2.(*ClientConn).readLoop",
	"net/http.(*http2ClientConn).readLoop",
	"net/http/internal/http2.(*ClientConn).readLoop",
	"k8s.io/client-go/tools/cache.(*controller)",
	"k8s.io/client-go/tools/cache.(*sharedProcessor)",
	"k8s.io/client-go/tools/cache.(*sharedIndexInformer)",
	"k8s.io/client-go/tools/cache.(*Reflector)",
	"k8s.io/client-go/tools/cache.(*RealFIFO)",
	"context.(*cancelCtx).propagateCancel.func2",
	"sigs.k8s.io/controller-runtime/pkg/internal/syncs.MergeChans",
}

// grownRoots are those of the shared roots that have no account: whoever makes a transport or a context of its own in each
// reconcile leaves ever more of them behind, which only their growth tells.
var grownRoots = [...]string{
	"net/http.(*persistConn).readLoop",
	"net/http.(*persistConn).writeLoop",
	"golang.org/x/net/http2.(*ClientConn).readLoop",
	"net/http.(*http2ClientConn).readLoop",
	"net/http/internal/http2.(*ClientConn).readLoop",
	"context.(*cancelCtx).propagateCancel.func2",
}

// servingRoots are goroutines whose number others decide: the peer of a connection, or for a controller's workers its options.
// Controllers that start one after the other have ever more workers, and as many of one creator as a leak has.
var servingRoots = [...]string{
	"net/http.(*conn).serve",
	"net/http.(*connReader).backgroundRead",
	"golang.org/x/net/http2.(*serverConn)",
	"net/http.(*http2serverConn)",
	"net/http/internal/http2.(*serverConn)",
	"google.golang.org/grpc.(*Server)",
	"google.golang.org/grpc/internal/transport.NewServerTransport",
	"google.golang.org/grpc/internal/transport.(*http2Server)",
	"sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller",
}

// isShared reports whether a root function's goroutines belong to the whole process.
func isShared(root string) bool { return hasAnyPrefix(root, sharedRoots[:]) }

// mustNotGrow reports whether a root function's goroutines belong to the whole process and are judged by their growth.
func mustNotGrow(root string) bool { return hasAnyPrefix(root, grownRoots[:]) }

// isServing reports whether a root function serves a peer's connection or a controller's queue.
func isServing(root string) bool { return hasAnyPrefix(root, servingRoots[:]) }

func hasAnyPrefix(function string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(function, p) {
			return true
		}
	}
	return false
}
