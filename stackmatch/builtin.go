package stackmatch

import "slices"

// Builtin gives the built-in rules in their order: locks, HTTP, client-go and controller-runtime, other libraries, general
// waits, and what is harmless. The slice and all that it points to are new on each call.
func Builtin() []Rule {
	return slices.Concat(
		lockRules(), lockWaitRules(), httpRules(), requestRules(), watchRules(), eventRules(),
		handlerRules(), informerRules(), sessionRules(), queueRules(), grpcRules(), libraryRules(), threadRules(),
		harmlessRules(), servedRules(), waitRules(), stuckRules(), hungRules(), growthRules(), pileRules(),
	)
}

// How names begin that many rules need.
const (
	clientGo          = "k8s.io/client-go/"
	cacheName         = clientGo + "tools/cache."
	apiWatchName      = "k8s.io/apimachinery/pkg/watch."
	waitName          = "k8s.io/apimachinery/pkg/util/wait."
	controllerRuntime = "sigs.k8s.io/controller-runtime/pkg/"
)

// lockRules are about goroutines that wait for each other.
func lockRules() []Rule {
	return []Rule{
		{
			ID: "GOR-101", Title: "lock and semaphore taken in opposite order", Severity: SeverityCritical,
			Categories: []string{"deadlock-lock-semaphore"},
			Doc: "One goroutine holds a lock and waits for a semaphore; the goroutines that hold the semaphore want the lock. " +
				"The one odd goroutine that is inside the critical section is the culprit, the big group are its victims.",
			Sources: []string{"argoproj/argo-cd#18467", "argoproj/gitops-engine#604"},
			Advice:  "Do not wait for a semaphore while holding the lock that its holders need: acquire the semaphore first, or release the lock around the wait.",
			Verdict: VerdictLeak, Match: Match{Predicate: "lock-semaphore-cycle"},
		},
		{
			ID: "GOR-102", Title: "a wait for workers that wait for the waiter", Severity: SeverityCritical,
			Categories: []string{"deadlock-waitgroup"},
			Doc: "A goroutine waits for a sync.WaitGroup while it holds what the workers need: the lock they ask for, or the channel that it would read only after the wait. " +
				"Neither side can go on.",
			Sources: []string{"golang/go#14402"},
			Advice:  "Wait without the lock, or read the results while the workers run and close the channel from a separate goroutine after Wait.",
			Verdict: VerdictLeak, Match: Match{Predicate: "lock-waitgroup-cycle"},
		},
		{
			ID: "GOR-103", Title: "a goroutine holds a lock while it is blocked itself", Severity: SeverityCritical,
			Categories: []string{"deadlock"},
			Doc: "Goroutines have waited for a lock for minutes, and one goroutine that is inside the same critical section is blocked for as long. " +
				"Four goroutines can be the whole bug: the count says nothing.",
			Sources: []string{"hazelcast/hazelcast-platform-operator#343"},
			Advice:  "Release the lock before calling out: a callback, a Shutdown or a channel operation must not run under the lock that it needs.",
			Verdict: VerdictLeak, Match: Match{Predicate: "lock-held-by-waiter"},
		},
		{
			ID: "GOR-104", Title: "goroutines wait for a lock that nobody gives back", Severity: SeverityCritical,
			Categories: []string{"deadlock"},
			Doc: "Goroutines have been parked in a mutex or RWMutex lock for two minutes or longer and no goroutine of the dump is seen to hold it: " +
				"a missing Unlock on some path, or a holder that has ended.",
			Sources: []string{"sync.Mutex"},
			Advice:  "Look for a return or panic between Lock and Unlock in the named function's type, and use defer.",
			Verdict: VerdictLeak, Match: Match{Predicate: "lock-holder-unknown"},
		},
	}
}

// lockWaitRules are about locks that are held for long.
func lockWaitRules() []Rule {
	return []Rule{
		{
			ID: "GOR-110", Title: "a pile at a lock grows", Severity: SeverityWarning,
			Categories: []string{"lock-contention"},
			Doc:        "Goroutines pile up at a lock whose holder works, and between the dumps they have become twice as many: the work is slower than its callers, or the lock is never given back.",
			Sources:    []string{"sync.Mutex"},
			Advice:     "Move the request or the loop out of the critical section, or shard the lock; look for a path without Unlock.",
			Verdict:    VerdictLeak, Match: Match{Predicate: "lock-pile-doubled"},
		},
		{
			ID: "GOR-105", Title: "a lock is held during slow work", Severity: SeverityWarning,
			Categories: []string{"lock-contention"},
			Doc: "Goroutines pile up at a lock whose holder runs, sleeps or waits for the network. They drain when the work is done; the pile is load, " +
				"and grows without end only when the work is slower than the callers.",
			Sources: []string{"sync.Mutex"},
			Advice:  "Move the request or the loop out of the critical section, or shard the lock.",
			Verdict: VerdictSuspect, Growing: VerdictSuspect, Match: Match{Predicate: "lock-held-while-working"},
		},
		{
			ID: "GOR-107", Title: "a lock has been held for minutes during slow work", Severity: SeverityCritical,
			Categories: []string{"lock-contention"},
			Doc: "Goroutines have waited two minutes or longer for a lock whose holder runs, sleeps or waits for the network: a request without a deadline, or work that is slower than its callers. " +
				"They pile up without a bound.",
			Sources: []string{"sync.Mutex"},
			Advice:  "Give the request a deadline, and move it out of the critical section.",
			Verdict: VerdictLeak, Match: Match{Predicate: "lock-held-for-minutes"},
		},
		{
			ID: "GOR-108", Title: "a reconcile waits for workers that do not end", Severity: SeverityCritical,
			Categories: []string{"deadlock-waitgroup"},
			Doc:        "A controller's worker has waited ten minutes or longer inside Reconcile for a WaitGroup or an errgroup: its workers do not end, and the controller stands still.",
			Sources:    []string{"sync.WaitGroup"},
			Advice:     "Give the workers the reconcile's context and a deadline, and let them select on it.",
			Verdict:    VerdictLeak,
			Match:      Match{Frames: []Pattern{Exact("sync.(*WaitGroup).Wait"), Exact(controllerRuntime + "internal/controller.(*Controller).reconcileHandler")}, MinWait: minutes(10)},
		},
		{
			ID: "GOR-109", Title: "a shutdown waits for goroutines that do not end", Severity: SeverityWarning,
			Categories: []string{"deadlock-waitgroup"},
			Doc:        "A function that stops, closes or drains something has waited ten minutes or longer for a WaitGroup: what it told to end does not.",
			Sources:    []string{"sync.WaitGroup"},
			Advice:     "See that each goroutine of the group selects on the stop signal, also while it sends; wait with a deadline.",
			Verdict:    VerdictLeak,
			Match:      Match{Frames: []Pattern{Exact("sync.(*WaitGroup).Wait"), Regexp(`(?i)[.)](stop|shutdown|close|drain)\w*(\.func[\d.]+)?$`)}, MinWait: minutes(10)},
		},
		{
			ID: "GOR-106", Title: "goroutines queue behind one that is blocked in a send", Severity: SeverityWarning,
			Categories: []string{"chan-send-abandoned"},
			Doc: "Goroutines wait on a sync.Cond for their turn; the one whose turn it is is blocked in a channel send that nobody receives. " +
				"That one is the cause, the others are victims. sync.Cond.Wait alone is normal for an idle queue.",
			Sources: []string{"kubernetes/kubernetes#77434"},
			Advice:  "Select on the stop channel beside the send, and wake the waiters when stopping.",
			Verdict: VerdictLeak, Match: Match{Predicate: "behind-blocked-ticket"},
		},
	}
}
