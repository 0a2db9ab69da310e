package stackmatch

// httpRules are about the connections of net/http's client.
func httpRules() []Rule {
	readLoop := Exact("net/http.(*persistConn).readLoop")
	writeLoop := Exact("net/http.(*persistConn).writeLoop")
	return []Rule{
		{
			ID: "GOR-201", Title: "response bodies are not closed", Severity: SeverityWarning,
			Categories: []string{"http-response-body-unclosed"},
			Doc: "The connection's readLoop waits in select for the end of a response body, and no goroutine reads one. An idle connection waits in IO wait instead. " +
				"Each unclosed body keeps a connection, two goroutines and a file descriptor.",
			Sources: []string{"net/http.Response.Body", "net/http/transport.go"},
			Advice:  "Close every response body, also when the status is not 200 and when the body is not wanted: defer resp.Body.Close() after the error check.",
			Verdict: VerdictLeak, Trap: "S1-05b", Blame: "net/http.(*persistConn).readLoop", Companions: []Pattern{writeLoop},
			Match: Match{Leaf: readLoop, WaitReasons: []string{"select"}, MinCount: 5, Predicate: "body-without-reader"},
		},
		{
			ID: "GOR-202", Title: "a response body has been open for minutes", Severity: SeverityWarning,
			Categories: []string{"http-response-body-unclosed"},
			Doc:        "A readLoop has waited for minutes for the end of a response body that no goroutine reads.",
			Sources:    []string{"net/http.Response.Body", "net/http/transport.go"},
			Advice:     "Close every response body, also when the status is not 200 and when the body is not wanted: defer resp.Body.Close() after the error check.",
			Verdict:    VerdictSuspect, Growing: VerdictLeak, Trap: "S1-05b", Blame: "net/http.(*persistConn).readLoop", Companions: []Pattern{writeLoop},
			Match: Match{Leaf: readLoop, WaitReasons: []string{"select"}, MinWait: minutes(5), Predicate: "body-without-reader"},
		},
		{
			ID: "GOR-203", Title: "a transport for each call keeps its idle connections for ever", Severity: SeverityWarning,
			Categories: []string{"http-transport-per-call"},
			Doc: "More connections are idle than one pool keeps, and they have been idle for longer than http.DefaultTransport's 90 seconds: transports are made per call and dropped with " +
				"their connections. The stacks are those of a healthy keep-alive pool; only the count and the age tell.",
			Sources: []string{"elastic/cloud-on-k8s#854", "distribution/distribution#473"},
			Advice:  "Make one http.Client and Transport and share it; where that cannot be, call CloseIdleConnections when done and set IdleConnTimeout.",
			Verdict: VerdictLeak, Trap: "S2-13c/d", Blame: "net/http.(*Transport).dialConn", Companions: []Pattern{writeLoop},
			Match: Match{Frames: []Pattern{Exact("bufio.(*Reader).Peek"), readLoop}, MinWait: minutes(5), Predicate: "more-idle-than-one-pool"},
		},
		{
			ID: "GOR-204", Title: "many idle HTTP connections", Severity: SeverityWarning,
			Categories: []string{"http-transport-per-call"},
			Doc: "Dozens of connections idle in the pool. net/http keeps two for each host by default and client-go 25, so either many hosts are called or many transports exist; " +
				"a second dump tells.",
			Sources: []string{"elastic/cloud-on-k8s#854", "net/http.Transport.MaxIdleConnsPerHost"},
			Advice:  "Make one http.Client and Transport and share it; where that cannot be, call CloseIdleConnections when done and set IdleConnTimeout.",
			Verdict: VerdictSuspect, Growing: VerdictLeak, Trap: "S2-13c/d", Blame: "net/http.(*Transport).dialConn", Companions: []Pattern{writeLoop},
			Match: Match{Frames: []Pattern{Exact("bufio.(*Reader).Peek"), readLoop}, MinCount: 26, Predicate: "more-idle-than-in-flight"},
		},
	}
}

// requestRules are about requests and listeners.
func requestRules() []Rule {
	writeLoop := Exact("net/http.(*persistConn).writeLoop")
	roundTrip := Regexp(`^net/http\.\(\*(persistConn|http2ClientConn)\)\.roundTrip$|http2\.\(\*ClientConn\)\.(RoundTrip|roundTrip)$`)
	return []Rule{
		{
			ID: "GOR-205", Title: "HTTP/2 connections pile up", Severity: SeverityWarning,
			Categories: []string{"http-transport-per-call"},
			Doc: "There are dozens of HTTP/2 client connections. One connection carries many requests to a host, so many of them mean many hosts or many transports; " +
				"client-go makes a new transport whenever a rest.Config has its own Dial or Proxy function or ever new certificates.",
			Sources: []string{"kubernetes-sigs/controller-runtime#3441", "kubernetes/client-go#1391"},
			Advice:  "Share one rest.Config and one client; do not set Dial or Proxy per client.",
			Verdict: VerdictSuspect, Growing: VerdictLeak, Trap: "S2-13b", Blame: "golang.org/x/net/http2.(*Transport).newClientConn",
			Match: Match{Frames: []Pattern{Regexp(`^(golang\.org/x/net/http2|net/http/internal/http2)\.\(\*ClientConn\)\.readLoop$|^net/http\.\(\*http2ClientConn\)\.readLoop$`)}, MinCount: 26},
		},
		{
			ID: "GOR-002", Title: "an HTTP request waits for its answer without a deadline", Severity: SeverityWarning,
			Categories: []string{"http-no-timeout"},
			Doc: "A request has waited ten minutes or longer for the response's header: the server hangs and neither the client nor the request's context sets a limit. One or two may be long polls. " +
				"The article's form of this rule asked for runtime.gopark below net/http, which no dump prints.",
			Sources: []string{"net/http.Client.Timeout"},
			Advice:  "Pass a context with a deadline to http.NewRequestWithContext, or set Client.Timeout.",
			Verdict: VerdictLeak, Enough: 3, Trap: "S1-05", Companions: []Pattern{writeLoop},
			Match: Match{Frames: []Pattern{roundTrip}, MinWait: minutes(10)},
		},
		{
			ID: "GOR-206", Title: "many HTTP requests wait for their answer", Severity: SeverityWarning,
			Categories: []string{"http-no-timeout"},
			Doc:        "Twenty or more requests of one place wait for the response's header, some for two minutes or longer.",
			Sources:    []string{"net/http.Client.Timeout"},
			Advice:     "Pass a context with a deadline to http.NewRequestWithContext, or set Client.Timeout.",
			Verdict:    VerdictSuspect, Growing: VerdictLeak, Trap: "S1-05", Companions: []Pattern{writeLoop},
			Match: Match{Frames: []Pattern{roundTrip}, MinCount: 20, MinWait: minutes(2)},
		},
		{
			ID: "GOR-208", Title: "a crowd of HTTP requests waits for answers", Severity: SeverityInfo,
			Categories: []string{"http-no-timeout"},
			Doc:        "A hundred or more requests of one place wait for the response's header. Without the age of the waits it may be load.",
			Sources:    []string{"net/http.Client.Timeout"},
			Advice:     "Bound the requests in flight, and give each a deadline.",
			Verdict:    VerdictSuspect, Growing: VerdictSuspect, Trap: "S1-05", Companions: []Pattern{writeLoop},
			Match: Match{Frames: []Pattern{roundTrip}, MinCount: 100},
		},
		{
			ID: "GOR-207", Title: "listeners are not closed", Severity: SeverityWarning,
			Categories: []string{"listener-unclosed"},
			Doc:        "Twenty or more goroutines of one place wait in Accept. A server for each object can be by design; what decides is the number of live objects, or growth while that stands still.",
			Sources:    []string{"gitpod-io/gitpod#3108", "gitpod-io/gitpod#3824"},
			Advice:     "Stop the server when its object goes: grpc.Server.Stop, http.Server.Close or Listener.Close on every path.",
			Verdict:    VerdictSuspect, Growing: VerdictLeak,
			Match: Match{Frames: []Pattern{Regexp(`^net\.\(\*(netFD|TCPListener|UnixListener)\)\.(accept|Accept)$`)}, MinCount: 20},
		},
	}
}
