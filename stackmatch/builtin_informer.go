package stackmatch

// handlerRules are about event handlers.
func handlerRules() []Rule {
	run := Exact(cacheName + "(*processorListener).run")
	pop := Exact(cacheName + "(*processorListener).pop")
	handlerAdvice := "Add a handler once per informer, keep the registration and call RemoveEventHandler when the user of it goes."
	handlerSources := []string{"kubefleet-dev/kubefleet#396", "kubernetes/kubernetes#114066", "kubernetes/kubernetes#142039"}
	informer := []Pattern{
		Exact(cacheName + "(*Reflector).startResync"),
		Regexp(`^k8s\.io/client-go/tools/cache\.\(\*controller\)\.Run(WithContext)?\.func1$`),
		Exact(cacheName + "(*sharedProcessor).run"),
		Regexp(`^k8s\.io/client-go/tools/cache\.(watchHandler|handleAnyWatch|\(\*Reflector\)\.watchHandler)$`),
		Exact(apiWatchName + "(*StreamWatcher).receive"),
		Regexp(`http2\.\(\*clientStream\)\.(doRequest|writeRequest)$`), run, pop,
		Regexp(`^k8s\.io/client-go/util/workqueue\.\(\*Type(d)?\)\.Get$`),
	}
	return []Rule{
		{
			ID: "GOR-311", Title: "event handlers are added again and again", Severity: SeverityWarning,
			Categories: []string{"informer-event-handler"},
			Doc: "Each handler is a run and a pop goroutine and a buffer of 18 KB. A hundred or more handlers for each informer mean that a loop or a reconcile adds them; " +
				"informers stay as many as they were, and the function that adds them is in no stack.",
			Sources: handlerSources, Advice: handlerAdvice,
			Verdict: VerdictLeak, Trap: "S2-07a", Blame: cacheName + "(*processorListener).run", Companions: []Pattern{pop},
			Match: Match{Frames: []Pattern{run}, Predicate: "listeners-far-above-informers"},
		},
		{
			ID: "GOR-312", Title: "event handlers grow while informers do not", Severity: SeverityWarning,
			Categories: []string{"informer-event-handler"},
			Doc:        "Handlers have grown between the dumps more than informers have. The growth may be a staircase that is flat for hours; handlers that are there by design do not count.",
			Sources:    handlerSources, Advice: handlerAdvice,
			Verdict: VerdictLeak, Trap: "S2-07a", Blame: cacheName + "(*processorListener).run", Companions: []Pattern{pop},
			Match: Match{Frames: []Pattern{run}, Predicate: "listeners-grown"},
		},
		{
			ID: "GOR-313", Title: "many event handlers for each informer", Severity: SeverityInfo,
			Categories: []string{"informer-event-handler"},
			Doc:        "There are forty or more handlers for each informer. Large controllers have twenty by design; a second dump tells whether they grow.",
			Sources:    handlerSources, Advice: handlerAdvice,
			Verdict: VerdictSuspect, Growing: VerdictLeak, Trap: "S2-07a", Blame: cacheName + "(*processorListener).run", Companions: []Pattern{pop},
			Match: Match{Frames: []Pattern{run}, Predicate: "listeners-above-informers"},
		},
		{
			ID: "GOR-314", Title: "one controller's informers are started again and again", Severity: SeverityWarning,
			Categories: []string{"informer-per-refresh"},
			Doc: "Ten or more informers were started by one line of user code. Their workers look idle and healthy in workqueue.Get; it is the number of copies that is not: " +
				"each refresh makes new ones and never closes the stop channel of the old ones.",
			Sources: []string{"istio-ecosystem/admiral#122", "k8s.io/client-go/tools/cache/shared_informer.go"},
			Advice:  "Close the old stop channel (and call factory.Shutdown) before making new informers, or share one factory.",
			Verdict: VerdictLeak, Trap: "S1-04", Companions: informer,
			Match: Match{
				Frames: []Pattern{
					Regexp(`^k8s\.io/client-go/tools/cache\.\(\*controller\)\.processLoop$`),
					Prefix(cacheName + "(*sharedIndexInformer).Run"),
				},
				Predicate: "copies-of-one-controller",
			},
		},
	}
}

// informerRules are about informers and caches.
func informerRules() []Rule {
	return []Rule{
		{
			ID: "GOR-319", Title: "caches are started with a context that never ends", Severity: SeverityWarning,
			Categories: []string{"remote-cluster-cache"},
			Doc:        "Ten or more caches beside the managers' own wait on a nil Done channel, as context.Background has: nothing can ever stop them, although one is made for each cluster or tenant.",
			Sources:    []string{"sigs.k8s.io/controller-runtime/pkg/cache"},
			Advice:     "Start the cache with a context that is cancelled when its cluster or tenant goes.",
			Verdict:    VerdictLeak, Trap: "X-5", Blame: controllerRuntime + "cache/internal.(*Informers).Start",
			Match: Match{Leaf: Exact(controllerRuntime + "cache/internal.(*Informers).Start"), WaitReasons: []string{"chan receive (nil chan)"}, MinCount: 5, Predicate: "many-caches"},
		},
		{
			ID: "GOR-320", Title: "informers of clusters that do not answer", Severity: SeverityWarning,
			Categories: []string{"remote-cluster-cache"},
			Doc:        "Ten or more reflectors wait to try again while others are in their watch, and there are more caches than managers: caches of clusters that are gone were not stopped.",
			Sources:    []string{"kubernetes-sigs/cluster-api#11272", "k8s.io/client-go/tools/cache/reflector.go"},
			Advice:     "Cancel the context that the cache was started with when its cluster goes.",
			Verdict:    VerdictLeak, Trap: "X-5", Blame: cacheName + "(*Reflector).Run",
			Match: Match{
				Frames:    []Pattern{Regexp(`^k8s\.io/client-go/tools/cache\.\(\*Reflector\)\.Run(WithContext)?$`)},
				Without:   []Pattern{Prefix(cacheName + "(*Reflector).ListAndWatch"), Prefix(cacheName + "(*Reflector).list")},
				Predicate: "reflectors-far-from-server",
			},
		},
		{
			ID: "GOR-315", Title: "many controller-runtime caches", Severity: SeverityWarning,
			Categories: []string{"remote-cluster-cache"},
			Doc: "Ten or more caches run beside the managers' own: one for each remote cluster or tenant. That can be by design; caches of clusters that are gone are a leak, " +
				"with ten goroutines, a store and a watch for each kind.",
			Sources: []string{"kubernetes-sigs/cluster-api#11272"},
			Advice:  "Cancel the context that the cache was started with when its cluster or tenant goes; compare the number of caches with that of live clusters.",
			Verdict: VerdictSuspect, Growing: VerdictLeak, Trap: "X-5", Blame: controllerRuntime + "cache/internal.(*Informers).Start",
			Match: Match{Frames: []Pattern{Exact(controllerRuntime + "cache/internal.(*Informers).Start")}, MinCount: 5, Predicate: "many-caches"},
		},
		{
			ID: "GOR-316", Title: "clients with rotating certificates are made per call", Severity: SeverityWarning,
			Categories: []string{"k8s-client-per-call"},
			Doc: "Each distinct rest.Config with a certificate callback starts a rotation goroutine with a work queue that runs for ever. Its seven goroutines have one count: they are one leak, " +
				"not seven, and the queue is not the culprit.",
			Sources: []string{"kubernetes/client-go#939"},
			Advice:  "Make one rest.Config and clientset for each identity and share it.",
			Verdict: VerdictLeak, Enough: 20, Trap: "S2-13b", Blame: clientGo + "transport.(*dynamicClientCert).Run",
			Companions: []Pattern{
				Prefix(clientGo + "util/workqueue."), Prefix(waitName + "PollImmediateUntil"), Prefix(waitName + "poller."),
				Prefix(clientGo + "transport.(*dynamicClientCert)."),
			},
			Match: Match{Leaf: Regexp(`^k8s\.io/client-go/transport\.\(\*(dynamicClientCert|certRotatingDialer)\)\.[rR]un$`), MinCount: 5},
		},
	}
}

// sessionRules are about clients and their sessions.
func sessionRules() []Rule {
	return []Rule{
		{
			ID: "GOR-317", Title: "exec streams are left open", Severity: SeverityWarning,
			Categories: []string{"exec-stream"},
			Doc:        "SPDY connections of exec, attach or port-forward wait in shutdown for streams that were not removed. sync.Cond.Wait is part of it, which elsewhere is a healthy idle queue.",
			Sources:    []string{"kubernetes/client-go#993", "kubernetes/kubernetes#105830"},
			Advice:     "Use StreamWithContext and cancel the context, upgrade client-go and spdystream, or use the WebSocket executor.",
			Verdict:    VerdictLeak, Blame: "github.com/moby/spdystream.(*Connection).shutdown",
			Companions: []Pattern{Regexp(`^github\.com/(moby|docker)/spdystream\.`)},
			Match:      Match{Leaf: Regexp(`^github\.com/(moby|docker)/spdystream\.\(\*Connection\)\.shutdown$`), MinCount: 3},
		},
		{
			ID: "GOR-323", Title: "exec, attach or port-forward sessions do not end", Severity: SeverityWarning,
			Categories: []string{"exec-stream"},
			Doc:        "Ten or more goroutines of remotecommand or portforward have waited for half an hour or longer: sessions whose peer or context has gone.",
			Sources:    []string{"kubernetes/kubernetes#105830"},
			Advice:     "Use StreamWithContext and cancel the context, and close the stop channel of a port-forward.",
			Verdict:    VerdictLeak,
			Match:      Match{Frames: []Pattern{Regexp(`^k8s\.io/client-go/(tools/(remotecommand|portforward)|transport/(spdy|websocket))\.`)}, MinCount: 10, MinWait: minutes(30)},
		},
		{
			ID: "GOR-318", Title: "many SPDY connections", Severity: SeverityInfo,
			Categories: []string{"exec-stream"},
			Doc:        "Twenty or more SPDY connections of exec, attach or port-forward are open.",
			Sources:    []string{"kubernetes/client-go#993"},
			Advice:     "Compare with the number of sessions that are meant to be open.",
			Verdict:    VerdictSuspect, Growing: VerdictLeak, Blame: "github.com/moby/spdystream.NewConnection",
			Companions: []Pattern{Regexp(`^github\.com/(moby|docker)/spdystream\.`)},
			Match:      Match{Leaf: Regexp(`^github\.com/(moby|docker)/spdystream\.`), MinCount: 20},
		},
	}
}

// queueRules are about work queues.
func queueRules() []Rule {
	queue := []Pattern{Prefix(controllerRuntime + "controller/priorityqueue.")}
	return []Rule{
		{
			ID: "GOR-321", Title: "priority queues are left running", Severity: SeverityWarning,
			Categories: []string{"priorityqueue-shutdown"},
			Doc:        "There are more of controller-runtime's priority queues than running controllers. Each has up to five goroutines, which only ShutDown ends.",
			Sources:    []string{"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"},
			Advice:     "Call ShutDown on every queue that is made, also when the controller never starts.",
			Verdict:    VerdictLeak, Trap: "X-2", Blame: controllerRuntime + "controller/priorityqueue.New", Companions: queue,
			Match: Match{Leaf: Regexp(`^sigs\.k8s\.io/controller-runtime/pkg/controller/priorityqueue\.\(\*priorityqueue\)\.(handleWaitingItems|spin)$`), Predicate: "priority-queues-without-controller"},
		},
		{
			ID: "GOR-322", Title: "work queues are left running", Severity: SeverityWarning,
			Categories: []string{"workqueue-not-shutdown"},
			Doc:        "There are more delay loops of work queues than goroutines that take from a queue and controllers together: queues that are made again and again and never shut down.",
			Sources:    []string{"k8s.io/client-go/util/workqueue/delaying_queue.go"},
			Advice:     "Call ShutDown on every queue that is made.",
			Verdict:    VerdictLeak, Trap: "X-2", Blame: clientGo + "util/workqueue.(*delayingType).waitingLoop",
			Companions: []Pattern{Regexp(`^k8s\.io/client-go/util/workqueue\.\(\*Type(d)?\)\.updateUnfinishedWorkLoop$`)},
			Match:      Match{Leaf: Exact(clientGo + "util/workqueue.(*delayingType).waitingLoop"), Predicate: "delay-queues-without-worker"},
		},
	}
}
