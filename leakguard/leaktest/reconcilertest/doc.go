// Package reconcilertest runs a reconciler many times in a test and fails when it leaks: goroutines, memory, or what
// probes count.
//
// # Usage
//
//	client := fake.NewClientBuilder().WithObjects(app).Build()
//	r := &Reconciler{Client: client}
//	reconcilertest.Verify(t, r, []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(app)}},
//		reconcilertest.Objects(client, func(i int) client.Object { return newApp(i) }))
//
// # Cost
//
// A clean reconciler is called about eleven times a hundred times for each request, see [Rounds]; a leaking one up to
// three hundred times a hundred times, until the memory has shown to grow without end.
//
// # Concurrency
//
// Verify calls the reconciler from one goroutine at a time. It measures the heap of the process and is refused in
// parallel tests.
//
// # Limits
//
// A fake client is no API server: what leaks only with a watch that the server closes, or with a conflict, needs envtest.
package reconcilertest
