package stackmatch

// serverWatchExpression matches the functions of servers that serve watches: the API server's, etcd's and those named
// like them.
const serverWatchExpression = `(?i)\(\*\w*(watchserver|serverwatchstream|cachewatcher|watchstream)\)\.`

// watchRules are about Kubernetes watches that nobody reads.
func watchRules() []Rule {
	receive := Exact(apiWatchName + "(*StreamWatcher).receive")
	decode := Regexp(`\.Decode$`)
	streams := []Pattern{
		Regexp(`http2\.\(\*clientStream\)\.(awaitRequestCancel|doRequest|writeRequest)$`),
		Regexp(`^net/http\.\(\*http2clientStream\)\.(awaitRequestCancel|doRequest|writeRequest)$`),
	}
	return []Rule{
		{
			ID: "GOR-302", Title: "watches have had an event that nobody takes for minutes", Severity: SeverityWarning,
			Categories: []string{"watch-not-stopped"},
			Doc:        "Watches have been parked for five minutes or longer with an event that nobody takes: parked in a channel send (apimachinery up to 0.27) or in select (later), while a live watch is in Decode.",
			Sources:    []string{"kuberhealthy/kuberhealthy#533"},
			Advice:     "Call Stop on every watch.Interface, with defer, on every path.",
			Verdict:    VerdictLeak, Trap: "S1-03b", Blame: apiWatchName + "(*StreamWatcher).receive", Companions: streams,
			Match: Match{Leaf: receive, WaitReasons: []string{"chan send", "select"}, MinWait: minutes(5)},
		},
		{
			ID: "GOR-301", Title: "watches are abandoned without Stop", Severity: SeverityWarning,
			Categories: []string{"watch-not-stopped"},
			Doc: "The watch's goroutines have an event and nobody takes it: each is parked in a channel send (apimachinery up to 0.27) or in select (later), while a live watch is in Decode. " +
				"Cancelling the context does not end it; only Stop or draining the channel does.",
			Sources: []string{"kuberhealthy/kuberhealthy#533", "k8s.io/apimachinery/pkg/watch/streamwatcher.go"},
			Advice:  "Call Stop on every watch.Interface, with defer, on every path.",
			Verdict: VerdictLeak, Enough: 10, Trap: "S2-16", Blame: apiWatchName + "(*StreamWatcher).receive", Companions: streams,
			Match: Match{Leaf: receive, WaitReasons: []string{"chan send", "select"}, MinCount: 3},
		},
		{
			ID: "GOR-303", Title: "watches are open that nobody reads", Severity: SeverityWarning,
			Categories: []string{"watch-not-stopped"},
			Doc: "Many more watches are open than informers run, and the dump has no goroutines that could be reading them: idle watches that were forgotten. " +
				"They heal when the server ends the watch after half an hour to an hour, and are made anew.",
			Sources: []string{"k8s.io/apimachinery/pkg/watch/streamwatcher.go"},
			Advice:  "Call Stop on every watch.Interface, with defer, on every path.",
			Verdict: VerdictLeak, Trap: "S1-03a", Blame: apiWatchName + "(*StreamWatcher).receive", Companions: streams,
			Match: Match{Frames: []Pattern{decode, receive}, Predicate: "watch-without-reader"},
		},
		{
			ID: "GOR-304", Title: "many watches beside the informers", Severity: SeverityInfo,
			Categories: []string{"benign-live-watches"},
			Doc:        "Twenty or more watches belong to no informer. Each is alive (in Decode) and goroutines that can read them exist.",
			Sources:    []string{"k8s.io/apimachinery/pkg/watch/streamwatcher.go"},
			Advice:     "Compare with the number of objects that are watched on purpose; a second dump tells whether they grow.",
			Verdict:    VerdictBenign, Growing: VerdictSuspect, Trap: "S1-03c", Blame: apiWatchName + "(*StreamWatcher).receive", Companions: streams,
			Match: Match{Frames: []Pattern{decode, receive}, Predicate: "watch-beside-informers"},
		},
		{
			ID: "GOR-305", Title: "a watch wrapper forwards events to nobody", Severity: SeverityWarning,
			Categories: []string{"watch-not-stopped"},
			Doc:        "Goroutines of a watch function have been parked in a channel send for minutes: their reader has gone without telling them.",
			Sources:    []string{"rancher/wrangler#661", "openyurtio/openyurt#2678"},
			Advice:     "Select on the context's Done or on a stop channel beside the send.",
			Verdict:    VerdictLeak, Trap: "S1-07",
			Match: Match{
				Leaf: Regexp(`(?i)watch[^/]*$`), Without: []Pattern{Prefix(waitName + "Poll")},
				WaitReasons: []string{"chan send"}, MinCount: 3, MinWait: minutes(5), Predicate: "not-stuck-sibling",
			},
		},
	}
}

// eventRules are about wrappers of watches, Events and servers of watches.
func eventRules() []Rule {
	return []Rule{
		{
			ID: "GOR-306", Title: "Events are emitted faster than they are sent", Severity: SeverityWarning,
			Categories: []string{"event-recorder-backpressure"},
			Doc: "The recorder starts one goroutine for each Event, and they wait to hand it to the broadcaster, whose one sink is held by the client-side rate limiter. " +
				"They drain when the load stops: it is unbounded queueing.",
			Sources: []string{"chaos-mesh/chaos-mesh#3761"},
			Advice:  "Emit fewer Events: only on a change of state, not in every Reconcile; a goroutine in rest.(*Request).tryThrottle shows that the sink is throttled.",
			Verdict: VerdictLeak, Enough: 200, Blame: clientGo + "tools/record.(*recorderImpl).generateEvent.func1",
			Match: Match{Frames: []Pattern{Prefix(apiWatchName + "(*Broadcaster).Action"), Prefix(clientGo + "tools/record.(*recorderImpl).generateEvent")}, MinCount: 20},
		},
		{
			ID: "GOR-307", Title: "event broadcasters are left running", Severity: SeverityWarning,
			Categories: []string{"event-broadcaster"},
			Doc: "Each broadcaster is a loop and its watchers. One set for each manager is normal (two with controller-runtime's newer events); more are left by managers or recorders " +
				"that are made again and again and never shut down.",
			Sources: []string{"kubernetes/kubernetes#96925", "kubernetes-sigs/controller-runtime#637"},
			Advice:  "Call Shutdown on the EventBroadcaster, or keep one for the process.",
			Verdict: VerdictLeak, Trap: "X-1", Blame: apiWatchName + "(*Broadcaster).loop",
			Companions: []Pattern{
				Exact(clientGo + "tools/record.(*eventBroadcasterImpl).StartEventWatcher.func1"),
				Exact(clientGo + "tools/events.(*eventBroadcasterImpl).startEventWatcher.func1"),
			},
			Match: Match{Leaf: Exact(apiWatchName + "(*Broadcaster).loop"), Predicate: "broadcasters-above-managers"},
		},
		{
			ID: "GOR-308", Title: "a server's watches outlive their requests", Severity: SeverityWarning,
			Categories: []string{"watch-stream-server"},
			Doc:        "Goroutines that serve watches are many more than the requests and streams that the server is in: their clients have gone. While both have one count, the clients own the number.",
			Sources:    []string{"k8s.io/apiserver/pkg/endpoints/handlers/watch.go"},
			Advice:     "End the stream when the client's context ends.",
			Verdict:    VerdictLeak,
			Match:      Match{Frames: []Pattern{Regexp(serverWatchExpression)}, MinCount: 20, Predicate: "more-than-requests"},
		},
	}
}
