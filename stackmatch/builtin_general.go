package stackmatch

// waitRules are about waits that never end, whatever the library.
func waitRules() []Rule {
	return []Rule{
		{
			ID: "GOR-501", Title: "goroutines wait on a nil channel or an empty select", Severity: SeverityWarning,
			Categories: []string{"nil-channel"},
			Doc:        "A nil channel and select{} never wake: these goroutines are lost for certain. One select{} in main is a common idiom and not meant.",
			Sources:    []string{"jbenet/goprocess#10", "golang/go#32702"},
			Advice:     "Make the channel before use; a context's Done may be nil (context.Background), so check it.",
			Verdict:    VerdictLeak, Trap: "S1-10",
			Match: Match{WaitReasons: []string{"chan receive (nil chan)", "chan send (nil chan)", "select (no cases)"}, MinCount: 3, Predicate: "outside-main"},
		},
		{
			ID: "GOR-502", Title: "a goroutine waits on a nil channel or an empty select", Severity: SeverityInfo,
			Categories: []string{"nil-channel"},
			Doc:        "One or two goroutines outside main can never wake. A deliberate blocker looks the same.",
			Sources:    []string{"golang/go#32702"},
			Advice:     "If it is deliberate, wait for a stop signal instead; if not, make the channel before use.",
			Verdict:    VerdictSuspect, Growing: VerdictLeak, Trap: "S1-10",
			Match: Match{WaitReasons: []string{"chan receive (nil chan)", "chan send (nil chan)", "select (no cases)"}, Predicate: "outside-main"},
		},
		{
			ID: "GOR-503", Title: "pollers are started again and again", Severity: SeverityWarning,
			Categories: []string{"ticker-poller"},
			Doc: "Pollers of one place run in numbers, and some of them have been blocked for minutes in a send that nobody receives: their reader went away and a new one got a new poller. " +
				"They are alive, so their waits are short: age is no evidence.",
			Sources: []string{"prometheus-operator/prometheus-operator#8593"},
			Advice:  "Give the poller a context that Stop cancels, and select on it beside the send.",
			Verdict: VerdictLeak, Trap: "S1-14b",
			Match: Match{Frames: []Pattern{Regexp(`^k8s\.io/apimachinery/pkg/util/wait\.(Poll|loopCondition|Until|JitterUntil|BackoffUntil)`)}, Predicate: "stuck-sibling"},
		},
		{
			ID: "GOR-504", Title: "pollers were started by a goroutine that is gone", Severity: SeverityWarning,
			Categories: []string{"ticker-poller"},
			Doc:        "Twenty or more pollers of one place were started by one goroutine that has ended. What started them cannot stop them any more, and nobody polls the same thing twenty times on purpose.",
			Sources:    []string{"prometheus-operator/prometheus-operator#8593"},
			Advice:     "Tie the poller to a context that ends with its user.",
			Verdict:    VerdictLeak, Trap: "S1-14b",
			Match: Match{Frames: []Pattern{Regexp(`^k8s\.io/apimachinery/pkg/util/wait\.(Poll|loopCondition|Until|JitterUntil|BackoffUntil)`)}, MinCount: 20, Predicate: "one-dead-creator"},
		},
		{
			ID: "GOR-505", Title: "goroutines are blocked for good in a channel send", Severity: SeverityWarning,
			Categories: []string{"chan-send-abandoned"},
			Doc: "Three or more goroutines of one place have been parked in a channel send for five minutes or longer. Their receiver has gone: it took the first result, or its context ended. " +
				"Back-pressure does not last that long.",
			Sources: []string{"kubernetes-sigs/controller-runtime#3565"},
			Advice:  "Give the channel room for every sender, or select on the context's Done beside the send. Do not close it under a parked sender: that panics.",
			Verdict: VerdictLeak, Trap: "S1-07",
			Match: Match{WaitReasons: []string{"chan send"}, MinCount: 3, MinWait: minutes(5)},
		},
	}
}

// stuckRules are about goroutines that are blocked in sends, or proved lost.
func stuckRules() []Rule {
	return []Rule{
		{
			ID: "GOR-506", Title: "a goroutine has been blocked in a channel send for long", Severity: SeverityInfo,
			Categories: []string{"chan-send-abandoned"},
			Doc:        "One or two goroutines have been parked in a channel send for fifteen minutes or longer.",
			Sources:    []string{"kubernetes-sigs/controller-runtime#3565"},
			Advice:     "Give the channel room for every sender, or select on the context's Done beside the send.",
			Verdict:    VerdictSuspect, Growing: VerdictLeak, Trap: "S1-07",
			Match: Match{WaitReasons: []string{"chan send"}, MinWait: minutes(15)},
		},
		{
			ID: "GOR-511", Title: "goroutines that are blocked in a channel send double", Severity: SeverityWarning,
			Categories: []string{"chan-send-abandoned"},
			Doc:        "Goroutines of one place that are parked in a channel send have become twice as many between the dumps, and they were started since: nobody receives.",
			Sources:    []string{"kubernetes-sigs/controller-runtime#3565"},
			Advice:     "Give the channel room for every sender, or select on the context's Done beside the send.",
			Verdict:    VerdictLeak, Trap: "S1-07",
			Match: Match{WaitReasons: []string{"chan send"}, Predicate: "doubled-user-code"},
		},
		{
			ID: "GOR-512", Title: "goroutines of a test that timed out are blocked in a channel send", Severity: SeverityWarning,
			Categories: []string{"chan-send-abandoned"},
			Doc:        "Three or more goroutines of one place have been parked in a channel send for a minute or longer in the dump of a test that ran out of time: a test has no load that would explain it.",
			Sources:    []string{"kubernetes-sigs/controller-runtime#3565"},
			Advice:     "Give the channel room for every sender, or select on the context's Done beside the send.",
			Verdict:    VerdictLeak, Trap: "S1-07",
			Match: Match{WaitReasons: []string{"chan send"}, MinCount: 3, MinWait: minutes(1), Predicate: "test-timed-out"},
		},
		{
			ID: "GOR-507", Title: "goroutines are blocked in a channel send", Severity: SeverityInfo,
			Categories: []string{"chan-send-abandoned"},
			Doc:        "Fifty or more goroutines of one place are parked in a channel send; without the age of the waits it may be back-pressure.",
			Sources:    []string{"kubernetes-sigs/controller-runtime#3565"},
			Advice:     "Take another dump: if they are more and none has gone, nobody receives.",
			Verdict:    VerdictSuspect, Growing: VerdictSuspect, Trap: "S1-07",
			Match: Match{WaitReasons: []string{"chan send"}, MinCount: 50, Predicate: "user-code"},
		},
		{
			ID: "GOR-508", Title: "the runtime has proved that goroutines can never run again", Severity: SeverityWarning,
			Categories: []string{"unreachable"},
			Doc:        "The runtime's leak profile marked goroutines: nothing that can still run can reach what they wait for. The mark is certain; its absence says nothing.",
			Sources:    []string{"runtime/pprof goroutineleak"},
			Advice:     "Close the channel, cancel the context or stop the watch that they wait for.",
			Verdict:    VerdictLeak, Trap: "S1-02",
			Match: Match{Predicate: "proved-leaked"},
		},
	}
}

// hungRules are about reconciles that do not end.
func hungRules() []Rule {
	return []Rule{
		{
			ID: "GOR-510", Title: "a reconcile has hung for an hour", Severity: SeverityCritical,
			Categories: []string{"reconcile-hung"},
			Doc:        "A controller's worker has been parked inside Reconcile for an hour or longer: its object and, with few workers, the whole controller stand still.",
			Sources:    []string{"hazelcast/hazelcast-platform-operator#343"},
			Advice:     "Give every wait in Reconcile the context and a deadline, or return and requeue.",
			Verdict:    VerdictLeak,
			Match:      Match{Frames: []Pattern{Exact(controllerRuntime + "internal/controller.(*Controller).reconcileHandler")}, MinWait: minutes(60)},
		},
		{
			ID: "GOR-509", Title: "a reconcile hangs", Severity: SeverityCritical,
			Categories: []string{"reconcile-hung"},
			Doc:        "A controller's worker has been parked inside Reconcile for ten minutes or longer: its object and, with few workers, the whole controller stand still.",
			Sources:    []string{"hazelcast/hazelcast-platform-operator#343"},
			Advice:     "Give every wait in Reconcile the context and a deadline, or return and requeue.",
			Verdict:    VerdictSuspect,
			Match:      Match{Frames: []Pattern{Exact(controllerRuntime + "internal/controller.(*Controller).reconcileHandler")}, MinWait: minutes(10)},
		},
	}
}

// growthRules are about growth between dumps.
func growthRules() []Rule {
	lease := Regexp(`(?i)leader-?election[^ ]*$`)
	return []Rule{
		{
			ID: "GOR-601", Title: "a goroutine stays behind for each lost leader election", Severity: SeverityWarning,
			Categories: []string{"leader-election"},
			Doc:        "Goroutines of leader election have grown between the dumps. One stays for each cycle that lost its lease, a few a month: far below any threshold of counts.",
			Sources:    []string{"istio/istio#60843"},
			Advice:     "End the goroutine with the cycle's context, not with the process's stop channel.",
			Verdict:    VerdictLeak,
			Match:      Match{Frames: []Pattern{lease}, Predicate: "grown-user-code"},
		},
		{
			ID: "GOR-602", Title: "goroutines of leader election were started by a goroutine that is gone", Severity: SeverityInfo,
			Categories: []string{"leader-election"},
			Doc:        "Ten or more goroutines of leader election were started by one goroutine that has ended. One dump cannot tell how many of them are meant.",
			Sources:    []string{"istio/istio#60843"},
			Advice:     "Compare with an older dump, or with the number of elections.",
			Verdict:    VerdictSuspect, Growing: VerdictLeak,
			Match: Match{Frames: []Pattern{lease}, Predicate: "dead-creators-cohorts"},
		},
		{
			ID: "GOR-001", Title: "goroutines that wait for a message grow", Severity: SeverityWarning,
			Categories: []string{"chan-receive-growth"},
			Doc: "Goroutines of one place that receive from a channel have grown between the dumps and none of the old ones was ever woken. " +
				"The article's form of this rule looked for the words \"blocking on chan receive\", which no dump prints.",
			Sources: []string{"runtime/traceback.go"},
			Advice:  "End the goroutine when its work is done: select on the context's Done, or close the channel on the sender's side.",
			Verdict: VerdictLeak, Trap: "S1-02",
			Match: Match{WaitReasons: []string{"chan receive"}, Predicate: "grown-parked"},
		},
		{
			ID: "GOR-603", Title: "goroutines grow that are never woken", Severity: SeverityWarning,
			Categories: []string{"goroutine-growth"},
			Doc:        "Goroutines of one place have grown between the dumps, and half of them have been parked for ten minutes or longer.",
			Sources:    []string{"S2-02"},
			Advice:     "Find what should wake or end them; tie them to a context that ends with their user.",
			Verdict:    VerdictLeak, Trap: "S2-02",
			Match: Match{Predicate: "grown-parked"},
		},
		{
			ID: "GOR-607", Title: "a library's background goroutine runs many times", Severity: SeverityInfo,
			Categories: []string{"client-session-per-reconcile"},
			Doc: "Twenty or more goroutines that a library started for itself wait or tick, with no frame of the program: clients, sessions or caches of which one is meant to be shared. " +
				"A pool of connections looks the same.",
			Sources: []string{"vmware/govmomi"},
			Advice:  "Make the client once and share it, or close it on every path; a second dump tells whether they grow.",
			Verdict: VerdictSuspect, Growing: VerdictLeak,
			Match: Match{MinCount: 20, Predicate: "library-daemon"},
		},
	}
}

// pileRules are the last: many goroutines of one place.
func pileRules() []Rule {
	return []Rule{
		{
			ID: "GOR-604", Title: "goroutines of one place have grown", Severity: SeverityInfo,
			Categories: []string{"goroutine-growth"},
			Doc: "Goroutines of one place have grown between the dumps, and they run now and then, or the dump does not say how long they wait, or they have stood still since. A pool and one for each live object looks the same: " +
				"the number of objects decides.",
			Sources: []string{"kubernetes-sigs/cluster-api#11272"},
			Advice:  "Compare with the number of live objects (the command's flag --objects).",
			Verdict: VerdictSuspect, Trap: "S2-02",
			Match: Match{Predicate: "grown-user-code"},
		},
		{
			ID: "GOR-605", Title: "one goroutine that is gone has started many that wait", Severity: SeverityInfo,
			Categories: []string{"goroutine-pile"},
			Doc:        "Ten or more goroutines of one place were started by one goroutine that has ended, one after the other, and none was woken since.",
			Sources:    []string{"runtime/traceback.go"},
			Advice:     "Take another dump: one cannot tell a pool from a leak.",
			Verdict:    VerdictSuspect, Growing: VerdictSuspect, Trap: "S2-02",
			Match: Match{Without: []Pattern{Prefix(clientGo + "util/workqueue.")}, Predicate: "dead-creators-cohorts"},
		},
		{
			ID: "GOR-606", Title: "many goroutines of one place", Severity: SeverityInfo,
			Categories: []string{"goroutine-pile"},
			Doc:        "A hundred or more goroutines of one place of user code. Thousands can be healthy when there is one for each object, and four can be the whole bug.",
			Sources:    []string{"cilium/cilium#5902"},
			Advice:     "Take another dump, or compare with the number of live objects (the command's flag --objects).",
			Verdict:    VerdictSuspect, Growing: VerdictSuspect, Trap: "S2-02",
			Match: Match{MinCount: 100, Predicate: "user-code"},
		},
	}
}

// harmlessRules name what looks like a leak to a checker that only counts, and is none.
func harmlessRules() []Rule {
	return []Rule{
		{
			ID: "GOR-901", Title: "a library's daemon, one for the process", Severity: SeverityInfo,
			Categories: []string{"benign-init-daemon"},
			Doc:        "A package's init function started it, once: a flusher or a janitor that lives as long as the process.",
			Sources:    []string{"kubernetes/klog#282", "census-instrumentation/opencensus-go#1191"},
			Advice:     "Nothing to do; a test-time checker needs it in its ignore list.",
			Verdict:    VerdictBenign,
			Match:      Match{MaxCount: 2, Predicate: "created-by-init"},
		},
		{
			ID: "GOR-902", Title: "goroutines of a synctest bubble or of a test's runner", Severity: SeverityInfo,
			Categories: []string{"benign-test"},
			Doc:        "The dump is of a test binary: its runner, its tests and what runs in a synctest bubble end with the test.",
			Sources:    []string{"testing/synctest"},
			Advice:     "Nothing to do.",
			Verdict:    VerdictBenign,
			Match:      Match{Frames: []Pattern{Regexp(`^(testing\.|testing/synctest\.|internal/synctest\.)`)}},
		},
		{
			ID: "GOR-903", Title: "connections and requests of an HTTP server", Severity: SeverityInfo,
			Categories: []string{"benign-load"},
			Doc:        "One goroutine for each connection or request that a client has opened: the peers own their number, and they end with it.",
			Sources:    []string{"net/http/server.go"},
			Advice:     "If there are too many, set the server's ReadHeaderTimeout and IdleTimeout.",
			Verdict:    VerdictBenign, Growing: VerdictBenign,
			Match: Match{Frames: []Pattern{Regexp(`^net/http\.\(\*conn\)\.serve$|^net/http\.\(\*http2serverConn\)\.|http2\.\(\*serverConn\)\.`)}, MinCount: 20, Predicate: "not-long-parked"},
		},
	}
}

// servedRules are about goroutines whose number the clients own.
func servedRules() []Rule {
	serverWatch := Regexp(serverWatchExpression)
	return []Rule{
		{
			ID: "GOR-905", Title: "readers of live watches", Severity: SeverityInfo,
			Categories: []string{"benign-live-watches"},
			Doc:        "As many goroutines of one place wait for events as watches are alive: each reads one.",
			Sources:    []string{"k8s.io/apimachinery/pkg/watch/streamwatcher.go"},
			Advice:     "Compare with the number of objects that are watched on purpose; a second dump tells whether they grow.",
			Verdict:    VerdictBenign, Growing: VerdictSuspect, Trap: "S1-03c",
			Match: Match{WaitReasons: []string{"select", "chan receive"}, MinCount: 20, Predicate: "reads-live-watches"},
		},
		{
			ID: "GOR-906", Title: "watches that a server serves", Severity: SeverityInfo,
			Categories: []string{"benign-live-watches"},
			Doc:        "One or a few goroutines for each watch that a client has open: the clients own their number.",
			Sources:    []string{"k8s.io/apiserver/pkg/endpoints/handlers/watch.go"},
			Advice:     "Nothing to do while requests and watches have one count.",
			Verdict:    VerdictBenign,
			Match:      Match{Frames: []Pattern{serverWatch}, MinCount: 20, Predicate: "not-long-parked"},
		},
		{
			ID: "GOR-907", Title: "goroutines that run", Severity: SeverityInfo,
			Categories: []string{"benign-load"},
			Doc:        "Twenty or more goroutines of one place are running or runnable: they wait for a processor, not for somebody.",
			Sources:    []string{"runtime/runtime2.go"},
			Advice:     "If there are too many, bound them with a semaphore.",
			Verdict:    VerdictBenign,
			Match:      Match{WaitReasons: []string{"running", "runnable"}, MinCount: 20},
		},
		{
			ID: "GOR-904", Title: "streams of a gRPC server", Severity: SeverityInfo,
			Categories: []string{"benign-load"},
			Doc:        "One goroutine for each stream or connection that a client has opened: the peers own their number.",
			Sources:    []string{"google.golang.org/grpc/server.go"},
			Advice:     "If there are too many, set the server's keepalive enforcement.",
			Verdict:    VerdictBenign, Growing: VerdictBenign,
			Match: Match{Frames: []Pattern{Regexp(`^google\.golang\.org/grpc\.\(\*Server\)\.(handleStream|serveStreams)|^google\.golang\.org/grpc/internal/transport\.\(\*http2Server\)\.`)}, MinCount: 20, Predicate: "not-long-parked"},
		},
	}
}
