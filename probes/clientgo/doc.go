// Package clientgo keeps account of what Kubernetes' own client leaks without a telling stack: informers, event handlers,
// watches, event broadcasters and workqueues.
//
// # Usage
//
// [Informers] is a probe, and its NewInformer fits cache.Options.NewInformer of a manager:
//
//	informers := clientgo.NewInformers(clientgo.InformersOptions{Ledger: probes.LedgerOptions{Scopes: scopes, Objects: objects}})
//	opts.Cache.NewInformer = informers.NewInformer(opts.Cache.NewInformer)
//
// leakguard.NewManager does that, and leakguard.Resources is a Resources for the whole process, which its guard knows.
//
// An informer that is made otherwise goes through [Informers.Wrap]. [Resources] is for what has no hook: what is passed
// through its functions is counted until it is stopped or shut down.
//
//	queue := clientgo.Queue(ctx, resources, workqueue.NewTypedRateLimitingQueue(limiter))
//	broadcaster := resources.Broadcaster(ctx, record.NewBroadcaster())
//
// [TransportCache] counts the transports that client-go makes because a client's configuration is like no other.
//
// # Cost
//
// An event costs two atomic additions more for each handler, one in 32 quick ones also two looks at the clock, and with a
// scope a span of low cardinality (BenchmarkHandler); none of it allocates. An addition to a wrapped queue costs nothing, a
// rate-limited one two look-ups; an item that is got and done 10 to 30 µs for up to 200 a second and a tenth of a µs for
// others (BenchmarkQueue). Adding a handler takes a stack, a few µs.
//
// # Concurrency
//
// Everything may be used concurrently.
//
// # Limits
//
// How long a handler has worked is an estimate while its calls take less than 10 µs: one in 32 is timed and stands for all.
//
// How many notifications wait for a handler is read from client-go's unexported fields by reflection; where they are
// named differently it is reported as unknown and the time in the handler has to do. Informers of a factory that the user
// makes are seen only when wrapped; their watches are seen by [probes.Transport].
package clientgo
