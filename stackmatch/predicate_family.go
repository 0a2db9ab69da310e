package stackmatch

import (
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// familyPredicates compare the counts of goroutines that belong together.
func familyPredicates() []Predicate {
	return []Predicate{
		{Name: "listeners-far-above-informers", Doc: "There are a hundred or more event handlers for each informer.", holds: func(_ *Group, in *Context) bool {
			return in.census.listeners >= 100*max(in.census.reflectors, 1)
		}},
		{Name: "listeners-above-informers", Doc: "There are forty or more event handlers for each informer.", holds: func(_ *Group, in *Context) bool {
			return in.census.listeners >= 40*max(in.census.reflectors, 1)
		}},
		{Name: "more-idle-than-one-pool", Doc: "More than a hundred connections are idle, which one http.DefaultTransport never keeps.", holds: func(_ *Group, in *Context) bool {
			return in.census.idleConns > 100
		}},
		{Name: "more-idle-than-in-flight", Doc: "More than fifty connections wait for the next answer beyond those whose request is in flight, which wait in the same stack; twenty-six when they have grown or waited for minutes.", holds: func(g *Group, in *Context) bool {
			idle := in.census.idleConns - in.census.inFlight
			return idle > 50 || idle >= 26 && (g.Oldest >= minutes(5) || in.grown(g))
		}},
		{Name: "body-without-reader", Doc: "More connections wait for the end of a response body than goroutines read one.", holds: func(_ *Group, in *Context) bool {
			return in.census.unreadBodies > in.census.bodyReaders
		}},
		{Name: "watch-without-reader", Doc: "Twenty or more live watches belong to no informer, and the dump has no goroutines that could be their readers.", holds: watchWithoutReader},
		{Name: "watch-beside-informers", Doc: "Twenty or more live watches belong to no informer.", holds: func(_ *Group, in *Context) bool {
			return in.census.liveWatches >= in.census.reflectors+20
		}},
		{Name: "broadcasters-above-managers", Doc: "Event broadcasters started at this place are more than five above two for each manager.", holds: func(g *Group, in *Context) bool {
			return g.Count > 2*max(in.census.managers, 1)+5
		}},
		{Name: "delay-queues-without-worker", Doc: "Work queues' delay loops outnumber the goroutines that take from a queue, and the controllers, by ten or more.", holds: func(_ *Group, in *Context) bool {
			return in.census.delayLoops >= in.census.queueWaiters+in.census.controllers+10
		}},
		{Name: "priority-queues-without-controller", Doc: "There are three or more priority queues above the number of running controllers.", holds: func(_ *Group, in *Context) bool {
			return in.census.priorityQueues >= in.census.controllers+3
		}},
		{Name: "many-caches", Doc: "Ten or more controller-runtime caches run beside those of managers.", holds: func(_ *Group, in *Context) bool {
			return in.census.caches >= in.census.managers+10
		}},
		{Name: "copies-of-one-controller", Doc: "Ten or more informers were started by one line outside the Kubernetes libraries.", holds: copiesOfOneController},
		{Name: "more-than-requests", Doc: "The group is more than ten above one and a half times the requests and streams that the process serves.", holds: func(g *Group, in *Context) bool {
			return g.Count > in.census.requests*3/2+10
		}},
		{Name: "reads-live-watches", Doc: "The group is user code and has as many goroutines, give or take a fifth, as watches are alive beside those of informers.", holds: readsLiveWatches},
		{Name: "reflectors-far-from-server", Doc: "Ten or more informers' reflectors wait to try again, and there are more caches than managers.", holds: func(g *Group, in *Context) bool {
			return g.Count >= 10 && in.census.caches > in.census.managers+1
		}},
		{Name: "like-etcd-clients", Doc: "Goroutines of the dump are in etcd's client library, or most gRPC connections have no DNS resolver, as those of etcd clients.", holds: func(_ *Group, in *Context) bool {
			return in.census.etcdClients > 0 || in.census.resolvers*2 < in.census.grpcConns
		}},
		{Name: "listeners-grown", Doc: "Event handlers have grown between the dumps, and by more than twice as many as informers.", holds: listenersGrown},
		{Name: "throttled-sink", Doc: "A goroutine waits in client-go's client-side rate limiter.", holds: func(_ *Group, in *Context) bool {
			return in.census.sinkThrottled > 0
		}},
	}
}

// watchWithoutReader reports whether nobody can be reading the watches that no informer owns.
func watchWithoutReader(_ *Group, in *Context) bool {
	extra := in.census.liveWatches - in.census.reflectors
	if extra < 20 {
		return false
	}
	return in.readers < extra/2
}

// countReaders counts the goroutines of user code that wait for something that could be an event.
func (c *Context) countReaders() int {
	readers := 0
	for i := range c.groups {
		g := &c.groups[i]
		if g.WaitReason != "" && g.WaitReason != "select" && g.WaitReason != "chan receive" {
			continue
		}
		if _, _, ok := c.culpritOf(g); ok {
			readers += g.Count
		}
	}
	return readers
}

// copiesOfOneController reports whether a group is the main loop of informers that user code starts again and again.
func copiesOfOneController(g *Group, in *Context) bool {
	const enough = 10
	if g.Count < enough {
		return false
	}
	names := appendNames(nil, g.Stack)
	if frame.OriginOf(plainName(g.CreatedBy.Function), in.main) >= frame.Library {
		return true
	}
	for i, name := range names {
		if strings.HasPrefix(name, "k8s.io/client-go/tools/cache.(*sharedIndexInformer).Run") {
			for _, below := range names[i+1:] {
				if frame.OriginOf(below, in.main) >= frame.Library {
					return true
				}
			}
		}
	}
	return false
}

// listenersGrown reports whether handlers have grown beyond what new informers explain.
func listenersGrown(g *Group, in *Context) bool {
	if !in.grown(g) || len(in.before) == 0 {
		return false
	}
	first := in.before[0]
	return in.census.listeners-first.listeners > 2*max(0, in.census.reflectors-first.reflectors)
}

// readsLiveWatches reports whether a group has one goroutine for each watch that no informer owns.
func readsLiveWatches(g *Group, in *Context) bool {
	extra := in.census.liveWatches - in.census.reflectors
	if extra < 20 || g.Count*5 < extra*4 || g.Count*5 > extra*6 {
		return false
	}
	return userCode(g, in)
}
