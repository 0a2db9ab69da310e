// Package probes counts what leaks without a telling stack, and labels work that must leave nothing behind.
//
// # Usage
//
// A [Scope] marks work, such as one reconcile, with goroutine labels that everything started inside it inherits:
//
//	scopes := probes.NewScopes()
//	app := scopes.Scope("app")
//	ctx, span := app.Begin(ctx, app.Object(namespace, name))
//	defer span.End()
//
// A goroutine that still carries the label of an ended span is an orphan; [Scopes.InFlight] tells which spans have not
// ended, and since when. [Handler] does this for webhooks and other HTTP handlers, [Func] for callbacks such as event handlers, and
// [Scope.Do] for any other work.
//
// A [Probe] counts a resource of its own and is read through a [Set], which survives a probe that panics or blocks:
//
//   - [Transport] keeps account of HTTP response bodies and watches, and of who makes clients, transports and connections;
//   - [Ledger] does so for anything that is opened and must be closed;
//   - [Size] and [Keys] compare a container of the user's own with the live objects, which an [ObjectIndex] knows;
//   - [Process] counts files, threads, finalizers, goroutines created and child processes.
//
// A reading of what must be closed names the open ones that are older than the grace, see [Opened]. Several watches of one
// resource and selector are worth a line; only when their number climbs they are a leak.
//
// [Hazards] looks at settings that make or hide leaks.
//
// # Cost
//
// Begin and End together cost about half more than [pprof.Do] with two labels, and with low cardinality a third of it and
// one allocation (BenchmarkScope): 220 ns and 4 allocations, 40 ns and one, beside 150 ns and 4, of 100 short runs
// the fastest of each. A round trip costs under 1 µs more (BenchmarkTransport). Reading a Set costs what its
// probes cost: a Transport some µs for each open body's distinct stack, a Process a readlink for each open file.
//
// # Concurrency
//
// Everything may be used concurrently, but for a [Span], which belongs to the goroutine that began it.
//
// # Limits
//
// Labels do not reach callbacks of [time.AfterFunc], finalizers and cleanups, jobs handed to a worker pool that is already
// running, and work after the user's own [pprof.Do] with a context that does not descend from the scope's.
//
// A body or watch that is handed to a goroutine which needs it for a bounded time after its span counts as left open until
// the first of its kind was seen to be closed; three times as long a life is granted from then on. A watch that names a timeout
// is granted that, unless an informer opened it.
//
// New connections are counted exactly for the first 64 calls of each round tripper and while most calls make one; of the calls
// of one that keeps its connections one in 16 is looked at. Connections that no [Transport] is around are seen as
// sockets only.
package probes
