// Package traps holds leaks that operators are known to have, each as a small piece of code that really leaks, beside
// its clean twin that does the same work and does not.
//
// The example operator runs any of them inside its reconciles, and the tests use them to show that leakguard names the
// controller and the line of each, and is silent about the twins. Some traps are no leaks at all but look like one to a
// naive detector; leakguard must be silent about them too.
//
// # Usage
//
//	trap, err := traps.Find("reconcile-goroutine")
//	work, err := trap.Leak(ctx, traps.Env{Config: mgr.GetConfig(), Client: mgr.GetClient(), Cache: mgr.GetCache()})
//	err = work.Reconcile(ctx, traps.Object{Namespace: "default", Name: "web"})
//
// A new trap is one new file with a function that returns its Trap, and one line in All.
//
// # Cost
//
// What a leak leaves behind, it leaves behind until the process ends: that is its purpose.
//
// # Concurrency
//
// Work may be called by several reconciles at once.
//
// # Limits
//
// The traps show each leak in its smallest form. In a real operator the line that leaks may be far from the reconcile.
package traps
