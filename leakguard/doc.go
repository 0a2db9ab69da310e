// Package leakguard finds leaks inside a running Kubernetes operator and names the controller, the kind of reconcile and
// the line, minutes after a leak starts, at tens of goroutines.
//
// # Usage
//
// One line for a manager that exists:
//
//	err := mgr.Add(leakguard.New(leakguard.Options{}))
//
// A drop-in for ctrl.NewManager, which instruments every controller of reconcile.Request with no change to it, serves
// the debug page under [PagePath] on the metrics server, and adds a health check:
//
//	mgr, err := leakguard.NewManager(cfg, ctrl.Options{}, leakguard.Options{})
//
// [Setup] does the same for a manager that exists, but for the controllers; wrap those with [Reconciler]. The
// report names those that are not.
//
// # Evidence
//
// Each tick reads the goroutine profile with the world running, the runtime's metrics, and the probes, and hands them to a
// pure [Detector]. Its rules:
//
//   - orphaned: goroutines of ten ended reconciles, come at ten different times, several of them of one object, alive for a
//     minute and more, of which few ever ended;
//   - object-gone: goroutines whose reconcile's object was deleted, three of them for five minutes and longer than any that ended;
//   - growth: a place whose number of goroutines rises and whose survivors do not end, not explained by live objects, decided
//     by full dumps: the same goroutines from dump to dump, creators gone or one with many, no live children, waited for long;
//   - accounting: what a probe knows to be lost, at the second scan;
//   - in-flight: a reconcile that has not returned for twenty minutes and three times as long as any before;
//   - lock-wait: the same goroutines in a lock for minutes; waits-forever: select without cases, born again and again;
//   - heap-growth: the live heap after collections rises, with the sites that carry it: listed until those have gained 16 MiB, or
//     a sixteenth of the memory limit if that is less, unless the limit will be reached within a day;
//   - counter: finalizers that wait, file descriptors, threads and counts of probes that grow without what explains them, by more
//     than five times the root of what there is, for of what comes and goes there are as many more by chance; how many
//     goroutines are created a minute is listed when it climbs and reconciles do not;
//   - unreachable: the runtime's own proof, with [Options].Proof.
//
// What the probes count is in [Report].Readings, on the page and in the metric leakguard_resource, a finding or not.
//
// Several rules about one culprit make one [Finding]. It goes from pending to firing, and is resolved when nothing of it
// has been left for five minutes; what is not certain enough is listed and never alarms.
//
// # Cost
//
// A tick costs what the bare goroutine profile costs and a few percent, see BenchmarkTick; sampling stays below one percent of
// one core, or the interval grows. The periodic path never stops the world for longer than that profile does, some tens of
// microseconds. A full dump stops it for milliseconds, is taken to decide a finding only, once a minute at first and each five
// minutes later, and not when it would take longer than [Budget].Pause. Every table is bounded; what finds no room is counted.
//
// # Concurrency
//
// A Guard samples on the goroutine that runs Start and starts no other that outlives a sample, unless a probe blocks, but the
// one that sends Events, and keeps the condition [ControllerPaused], where POD_NAME and POD_NAMESPACE are set; Start waits for
// it. All readers (metrics, page, health, [Guard.Report]) take the last immutable report and never sample. Goroutine labels
// belong to the process, so one Guard may run in a process at a time.
//
// # Limits
//
// Labels do not reach callbacks of [time.AfterFunc], jobs handed to a worker pool that is already running, finalizers, and
// work after the user's own [pprof.Do] with a context that does not descend from the reconcile's; the growth rule covers
// them, without a controller's name, and a callback that ends at once shows only in how many goroutines are created. One
// leaked goroutine held by a global, a leak with a bound and rare bursts look like a lazy singleton, a cache or a pool: they
// are listed. An endless ramp of idle sessions, a pool that keeps growing and a table that fills slowly look like a leak and
// may be called a likely one; so may goroutines that are ever more for five minutes before the first of them ends, until they
// have ended.
package leakguard
