package traps

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// clientPerReconcile makes clients that cannot share a connection, which ends after 90 seconds without use.
func clientPerReconcile() Trap {
	return Trap{
		Name: "client-per-reconcile", Row: "S2-13c", Expect: ExpectListed, NeedsAPI: true, Grows: Counted, Controller: LeakyController, ByType: true, Rules: []string{"accounting"},
		Title:   "Reconcile makes a client with a Dial function of its own, whose connection stays until it was idle for 90 seconds",
		Culprit: siteOf(listWith, ""),
		Leak:    perClient(ownDial),
		Twin:    perClient(func(env Env) *rest.Config { return env.Config }),
	}
}

// tlsPerReconcile makes clients whose TLS settings are new each time, so that client-go's cache has no transport for them.
func tlsPerReconcile() Trap {
	return Trap{
		Name: "tls-per-reconcile", Row: "S2-13b", Expect: ExpectListed, NeedsAPI: true, Grows: Counted, Controller: LeakyController, ByType: true, Rules: []string{"accounting"},
		Title:   "Reconcile makes a client with TLS settings of its own, whose connection stays until it was idle for 90 seconds",
		Culprit: siteOf(listWith, ""),
		Leak:    perClient(ownTLS),
		Twin:    perClient(func(env Env) *rest.Config { return env.Config }),
	}
}

// tenants counts the clients of tlsPerReconcile.
var tenants atomic.Uint64

func perClient(config func(Env) *rest.Config) Start {
	return func(_ context.Context, env Env) (Work, error) {
		return onObjects(func(ctx context.Context, object Object) error {
			return listWith(ctx, config(env), object)
		}), nil
	}
}

// ownDial is a configuration with a Dial function, which is reason enough for client-go to make a transport of its own.
func ownDial(env Env) *rest.Config {
	c := sooner(env)
	c.Dial = (&net.Dialer{}).DialContext
	return c
}

// ownTLS is a configuration whose TLS settings no other has.
func ownTLS(env Env) *rest.Config {
	c := sooner(env)
	c.NextProtos = []string{"h2", "http/1.1", "tenant-" + strconv.FormatUint(tenants.Add(1), 10)}
	return c
}

// sooner is a copy of the operator's configuration, for a transport of its own. Where leakguard's intervals are shortened,
// the time that its connections may be idle is, too.
func sooner(env Env) *rest.Config {
	c := rest.CopyConfig(env.Config)
	c.WrapTransport = transport.Wrappers(func(rt http.RoundTripper) http.RoundTripper {
		if t, ok := rt.(*http.Transport); ok {
			t.IdleConnTimeout = env.scaled(t.IdleConnTimeout)
		}
		return rt
	}, c.WrapTransport)
	return c
}

func listWith(ctx context.Context, config *rest.Config, object Object) error {
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("traps: %w", err)
	}
	_, err = c.Resource(configMaps).Namespace(object.Namespace).List(ctx, metav1.ListOptions{})
	return err
}
