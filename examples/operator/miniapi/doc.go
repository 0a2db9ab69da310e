// Package miniapi is a small Kubernetes API server in memory, for running an operator without a cluster.
//
// It speaks the protocol that a controller-runtime manager needs over real HTTPS with HTTP/2: discovery, create, read,
// update, delete, the status subresource, JSON, merge and strategic merge patches, finalizers, LIST and WATCH with
// resource versions, bookmarks and streamed lists, Leases and Events. What it stores it first writes to a journal, so
// that a server that was killed and started again on the same folder has the same objects, resource versions, address,
// certificate and token, and a watch goes on where it broke off.
//
// # Usage
//
//	err := miniapi.Serve(ctx, dir, func(id miniapi.Identity) { start(id.RESTConfig()) }, miniapi.Builtins()...)
//
// # Cost
//
// Everything is in memory: every object once, and the last 10,000 changes of each resource. A write is one line
// appended to the journal, which is rewritten when it has grown past 16 MiB.
//
// # Concurrency
//
// A Server may be used by any number of requests at once. One folder belongs to one Server at a time.
//
// # Limits
//
// JSON only. No validation by schema, no admission, no authorization beyond the one token, no server-side apply, no
// dry run, no field selectors but name and namespace, no paging (a limit is ignored, as the protocol allows). The journal
// outlives the process, not a power cut: it is not synced to disk. It is no replacement for a real kube-apiserver, and
// the end-to-end tests run the same operator against one.
package miniapi
