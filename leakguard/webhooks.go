package leakguard

import (
	"context"
	"net/http"
	"reflect"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/leakguard/leakguard/probes"
)

// webhookScope is the name of the scope of a webhook, and of the controller in its findings.
func webhookScope(path string) string { return "webhook " + path }

// webhookServer is the manager's webhook server, run with a label, so that what any of its handlers leaks has a name. The
// manager runs it as what it is: it looks at the interface of webhook servers and not at their type.
type webhookServer struct{ webhook.Server }

// labelledWebhooks wraps the webhook server of a manager's options; nil is the standard one.
func labelledWebhooks(s webhook.Server) webhook.Server {
	if s == nil {
		s = webhook.NewServer(webhook.Options{})
	}
	return &webhookServer{Server: s}
}

// Start implements manager.Runnable.
func (s *webhookServer) Start(ctx context.Context) (err error) {
	pprof.Do(ctx, pprof.Labels(probes.LabelController, "webhook server"), func(ctx context.Context) { err = s.Server.Start(ctx) })
	return err
}

// GetWebhookServer implements manager.Manager. Its result is the server that the options held, for many an operator
// asserts its type to set its certificates. controller-runtime's builder, which only registers webhooks, gets a server
// that makes each request to them a span of the scope "webhook" and its path. A handler that is registered by hand is
// reported as not instrumented, unless [probes.Handler] wraps it:
//
//	mgr.GetWebhookServer().Register(path, probes.Handler(leakguard.Scope("webhook "+path), hook))
func (m *Manager) GetWebhookServer() webhook.Server {
	server := m.Manager.GetWebhookServer()
	if labelled, ours := server.(*webhookServer); ours {
		server = labelled.Server
	}
	m.guard.webhooks.Store(&server)
	if calledByBuilder() {
		return &scopedWebhooks{Server: server}
	}
	return server
}

// calledByBuilder reports whether the builder of webhooks called the function that calls it, if need be through another
// manager that wraps ours.
func calledByBuilder() bool {
	pc := make([]uintptr, 4)
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "sigs.k8s.io/controller-runtime/pkg/builder.") {
			return true
		}
		if !more {
			return false
		}
	}
}

// scopedWebhooks registers webhooks whose requests are spans.
type scopedWebhooks struct{ webhook.Server }

// Register implements webhook.Server.
func (s *scopedWebhooks) Register(path string, hook http.Handler) {
	s.Server.Register(path, probes.Handler(Scope(webhookScope(path)), hook))
}

// plainWebhooks lists the paths of the webhooks that were registered without a scope. They are read from the standard server's
// own table, under its lock: ok is false when the table is in use or there is none.
func (g *Guard) plainWebhooks() (paths []string, ok bool) {
	server := g.webhooks.Load()
	if server == nil {
		return nil, false
	}
	standard, isStandard := (*server).(*webhook.DefaultServer)
	if !isStandard {
		return nil, false
	}
	v := reflect.ValueOf(standard).Elem()
	table, lock := v.FieldByName("webhooks"), v.FieldByName("mu")
	if !table.IsValid() || table.Type() != reflect.TypeFor[map[string]http.Handler]() || !lock.IsValid() || lock.Type() != reflect.TypeFor[sync.Mutex]() {
		return nil, false
	}
	mu := (*sync.Mutex)(unsafe.Pointer(lock.UnsafeAddr())) //nolint:gosec // the type was just checked
	if !mu.TryLock() {
		return nil, false // its health check holds the lock while it dials
	}
	defer mu.Unlock()
	scoped := reflect.TypeOf(probes.Handler(nil, nil))
	for hooks := table.MapRange(); hooks.Next(); {
		if hook := hooks.Value().Elem(); !hook.IsValid() || hook.Type() != scoped {
			paths = append(paths, hooks.Key().String())
		}
	}
	slices.Sort(paths)
	return paths, true
}

// noteWebhooks remembers the webhooks that have no scope.
func (g *Guard) noteWebhooks() {
	paths, _ := g.plainWebhooks()
	for _, path := range paths {
		g.noteController(webhookScope(path), false)
		g.addNotice("webhook %s is not instrumented: wrap its handler with probes.Handler(leakguard.Scope(%q), hook)", path, webhookScope(path))
	}
}
