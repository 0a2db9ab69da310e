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
// ended. A [Probe] counts a resource of its own and is read through a [Set], which survives a probe that panics or blocks.
//
// # Cost
//
// Begin and End together cost about the price of pprof.Do with two labels; see BenchmarkScope. Reading a Set costs what
// its probes cost.
//
// # Concurrency
//
// [Scopes], [Scope], [ObjectIndex] and [Set] may be used concurrently. A [Span] belongs to the goroutine that began it.
//
// # Limits
//
// Labels do not reach callbacks of time.AfterFunc, finalizers and cleanups, jobs handed to a worker pool that is already
// running, and work after the user's own pprof.Do with a context that does not descend from the scope's.
package probes
