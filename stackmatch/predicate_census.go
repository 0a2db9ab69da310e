package stackmatch

import "strings"

// census is how many goroutines of a dump play each part that predicates compare.
type census struct {
	reflectors, listeners, liveWatches   int
	bodyReaders, unreadBodies, idleConns int
	managers, controllers, caches        int
	delayLoops, queueWaiters             int
	priorityQueues, broadcasters         int
	sinkThrottled, etcdClients           int
	grpcConns, resolvers, requests       int
	inFlight, alarms                     int
}

// takeCensus counts all groups.
func takeCensus(waiters []waiter) census {
	var c census
	for i := range waiters {
		c.count(waiters[i].group, &waiters[i])
	}
	return c
}

// count adds a group to the census.
func (c *census) count(g *Group, w *waiter) {
	var seen census
	for i, name := range w.names {
		seen.part(name, i, w)
	}
	n := g.Count
	c.reflectors += n * min(seen.reflectors, 1)
	c.listeners += n * min(seen.listeners, 1)
	c.liveWatches += n * min(seen.liveWatches, 1)
	c.bodyReaders += n * min(seen.bodyReaders, 1)
	c.unreadBodies += n * min(seen.unreadBodies, 1)
	c.idleConns += n * min(seen.idleConns, 1)
	c.managers += n * min(seen.managers, 1)
	c.controllers += n * min(seen.controllers, 1)
	c.caches += n * min(seen.caches, 1)
	c.delayLoops += n * min(seen.delayLoops, 1)
	c.queueWaiters += n * min(seen.queueWaiters, 1)
	c.priorityQueues += n * min(seen.priorityQueues, 1)
	c.broadcasters += n * min(seen.broadcasters, 1)
	c.sinkThrottled += n * min(seen.sinkThrottled, 1)
	c.etcdClients += n * min(seen.etcdClients, 1)
	c.grpcConns += n * min(seen.grpcConns, 1)
	c.resolvers += n * min(seen.resolvers, 1)
	c.requests += n * min(seen.requests, 1)
	c.inFlight += n * min(seen.inFlight, 1)
	c.alarms += n * min(seen.alarms, 1)
}

// part notes what one frame says about its goroutine.
func (c *census) part(name string, i int, w *waiter) {
	switch {
	case strings.HasPrefix(name, "k8s.io/client-go/"):
		c.clientPart(strings.TrimPrefix(name, "k8s.io/client-go/"))
	case strings.HasPrefix(name, "sigs.k8s.io/controller-runtime/pkg/"):
		c.runtimePart(strings.TrimPrefix(name, "sigs.k8s.io/controller-runtime/pkg/"))
	case strings.HasPrefix(name, "net/http."):
		c.httpPart(name, i, w)
	case strings.HasPrefix(name, "go.etcd.io/etcd/"):
		c.etcdClients++
	case strings.HasPrefix(name, "google.golang.org/grpc"):
		c.grpcPart(name)
	case name == "testing.(*M).startAlarm.func1":
		c.alarms++
	case name == "k8s.io/apimachinery/pkg/watch.(*Broadcaster).loop":
		c.broadcasters++
	case name == "k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive":
		if w.leaf != i {
			c.liveWatches++ // it is below: in Decode
		}
	}
}

// clientPart notes a frame of client-go.
func (c *census) clientPart(name string) {
	switch name {
	case "tools/cache.(*Reflector).ListAndWatch", "tools/cache.(*Reflector).ListAndWatchWithContext",
		"tools/cache.(*Reflector).Run", "tools/cache.(*Reflector).RunWithContext":
		c.reflectors++
	case "tools/cache.(*processorListener).run":
		c.listeners++
	case "util/workqueue.(*delayingType).waitingLoop":
		c.delayLoops++
	case "util/workqueue.(*Type).Get", "util/workqueue.(*Typed).Get":
		c.queueWaiters++
	case "rest.(*Request).tryThrottle", "rest.(*Request).tryThrottleWithInfo":
		c.sinkThrottled++
	}
}

// runtimePart notes a frame of controller-runtime.
func (c *census) runtimePart(name string) {
	switch name {
	case "manager.(*controllerManager).Start":
		c.managers++
	case "internal/controller.(*Controller).Start":
		c.controllers++
	case "cache/internal.(*Informers).Start":
		c.caches++
	case "controller/priorityqueue.(*priorityqueue).handleWaitingItems", "controller/priorityqueue.(*priorityqueue).spin":
		c.priorityQueues++
	}
}

// httpPart notes a frame of net/http's client.
func (c *census) httpPart(name string, i int, w *waiter) {
	switch name {
	case "net/http.serverHandler.ServeHTTP":
		c.requests++
	case "net/http.(*persistConn).roundTrip":
		c.inFlight++
	case "net/http.(*bodyEOFSignal).Read":
		c.bodyReaders++
	case "net/http.(*persistConn).readLoop":
		if w.leaf == i {
			c.unreadBodies++
		} else if i > 0 && w.names[i-1] == "bufio.(*Reader).Peek" {
			c.idleConns++
		}
	}
}

// grpcPart notes a frame of gRPC.
func (c *census) grpcPart(name string) {
	switch name {
	case "google.golang.org/grpc/internal/transport.(*http2Client).reader":
		c.grpcConns++
	case "google.golang.org/grpc/internal/resolver/dns.(*dnsResolver).watcher":
		c.resolvers++
	case "google.golang.org/grpc.(*Server).handleStream":
		c.requests++
	}
}
