package traps

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// clientPerReconcile makes clients that cannot share a connection, which ends after 90 seconds without use.
func clientPerReconcile() Trap {
	return Trap{
		Name: "client-per-reconcile", Row: "S2-13c", Expect: ExpectListed, NeedsAPI: true, Grows: Counted, Controller: LeakyController,
		Gap:     "alarms by rules growth and counter where intervals are shortened, since 90 seconds are long then",
		Title:   "Reconcile makes a client with a Dial function of its own, whose connection stays until it was idle for 90 seconds",
		Culprit: siteOf(listWith, ""),
		Leak: perClient(func(c *rest.Config) *rest.Config {
			c = rest.CopyConfig(c)
			c.Dial = (&net.Dialer{}).DialContext
			return c
		}),
		Twin: perClient(func(c *rest.Config) *rest.Config { return c }),
	}
}

// tlsPerReconcile makes clients whose TLS settings are new each time, so that client-go's cache has no transport for them.
func tlsPerReconcile() Trap {
	return Trap{
		Name: "tls-per-reconcile", Row: "S2-13b", Expect: ExpectListed, NeedsAPI: true, Grows: Counted, Controller: LeakyController,
		Gap:     "alarms by rules growth and counter where intervals are shortened, since 90 seconds are long then",
		Title:   "Reconcile makes a client with TLS settings of its own, whose connection stays until it was idle for 90 seconds",
		Culprit: siteOf(listWith, ""),
		Leak: perClient(func(c *rest.Config) *rest.Config {
			c = rest.CopyConfig(c)
			c.NextProtos = []string{"h2", "http/1.1", "tenant-" + strconv.FormatUint(tenants.Add(1), 10)}
			return c
		}),
		Twin: perClient(func(c *rest.Config) *rest.Config { return c }),
	}
}

// tenants counts the clients of tlsPerReconcile.
var tenants atomic.Uint64

func perClient(configure func(*rest.Config) *rest.Config) Start {
	return func(_ context.Context, env Env) (Work, error) {
		return onObjects(func(ctx context.Context, object Object) error {
			return listWith(ctx, configure(env.Config), object)
		}), nil
	}
}

func listWith(ctx context.Context, config *rest.Config, object Object) error {
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("traps: %w", err)
	}
	_, err = c.Resource(configMaps).Namespace(object.Namespace).List(ctx, metav1.ListOptions{})
	return err
}
