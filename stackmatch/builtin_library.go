package stackmatch

// libraryRules are about libraries that operators use and that start goroutines of their own.
func libraryRules() []Rule {
	return []Rule{
		{
			ID: "GOR-402", Title: "gRPC connections as those of etcd clients are not closed", Severity: SeverityWarning,
			Categories: []string{"etcd-client-unclosed", "grpc-clientconn-unclosed"},
			Doc: "Each etcd client is a gRPC connection of its own: a reader, a writer and its serializers. " +
				"They stay when an error path returns without Close. No frame is etcd's own; what tells is that its connections resolve no names by DNS, as other targets without DNS do not either.",
			Sources: []string{"kubernetes-sigs/cluster-api#3482", "kubernetes-sigs/cluster-api#6540", "aws/etcdadm-controller#42"},
			Advice:  "Close the clientv3.Client on every path, or keep one for each cluster.",
			Verdict: VerdictLeak, Blame: "google.golang.org/grpc/internal/transport.NewHTTP2Client",
			Companions: []Pattern{
				Exact("google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run"),
				Regexp(`^google\.golang\.org/grpc/internal/transport\.(\(\*loopyWriter\)\.run|\(\*http2Client\)\.keepalive)$`),
				Regexp(`^google\.golang\.org/grpc\.\(\*(ccBalancerWrapper|ccResolverWrapper|addrConn)\)\.`),
				Prefix("google.golang.org/grpc/internal/resolver/"),
			},
			Match: Match{Frames: []Pattern{Exact("google.golang.org/grpc/internal/transport.(*http2Client).reader")}, MinCount: 20, Predicate: "like-etcd-clients"},
		},
		{
			ID: "GOR-401", Title: "gRPC client connections are not closed", Severity: SeverityWarning,
			Categories: []string{"grpc-clientconn-unclosed"},
			Doc:        "Each ClientConn has a reader, a writer and its serializers, three to one to one. The stack is gRPC's alone; an etcd client that is not closed looks the same.",
			Sources:    []string{"google.golang.org/grpc/internal/transport/http2_client.go"},
			Advice:     "Keep one ClientConn for each target and share it, or close it on every path, error paths included.",
			Verdict:    VerdictLeak, Blame: "google.golang.org/grpc/internal/transport.NewHTTP2Client",
			Companions: []Pattern{
				Exact("google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run"),
				Regexp(`^google\.golang\.org/grpc/internal/transport\.(\(\*loopyWriter\)\.run|\(\*http2Client\)\.keepalive)$`),
				Regexp(`^google\.golang\.org/grpc\.\(\*(ccBalancerWrapper|ccResolverWrapper|addrConn)\)\.`),
				Prefix("google.golang.org/grpc/internal/resolver/"),
			},
			Match: Match{Frames: []Pattern{Exact("google.golang.org/grpc/internal/transport.(*http2Client).reader")}, MinCount: 20},
		},
		{
			ID: "GOR-403", Title: "span processors are not shut down", Severity: SeverityWarning,
			Categories: []string{"otel-processor"},
			Doc:        "Each BatchSpanProcessor has a goroutine with a timer; one is normal. The runtime's leak profile never marks them, because the timer could wake them.",
			Sources:    []string{"caddyserver/caddy#7826", "open-telemetry/opentelemetry-go#1904"},
			Advice:     "Call Shutdown on the TracerProvider before making another, for example on a configuration reload.",
			Verdict:    VerdictLeak, Blame: "go.opentelemetry.io/otel/sdk/trace.NewBatchSpanProcessor",
			Companions: []Pattern{Prefix("go.opentelemetry.io/otel/sdk/trace.(*batchSpanProcessor).")},
			Match:      Match{Leaf: Exact("go.opentelemetry.io/otel/sdk/trace.(*batchSpanProcessor).processQueue"), MinCount: 5},
		},
		{
			ID: "GOR-404", Title: "metric readers and log processors are not shut down", Severity: SeverityWarning,
			Categories: []string{"otel-processor"},
			Doc:        "Each periodic reader or batch processor of OpenTelemetry has a goroutine with a timer; one or two are normal.",
			Sources:    []string{"open-telemetry/opentelemetry-go#1904"},
			Advice:     "Call Shutdown on the provider before making another.",
			Verdict:    VerdictLeak, Blame: "go.opentelemetry.io/otel/sdk",
			Match: Match{Leaf: Regexp(`^go\.opentelemetry\.io/otel/sdk/(metric|log)\.\(\*(PeriodicReader|periodicReader|BatchProcessor|bufferExporter)\)\.`), MinCount: 10},
		},
		{
			ID: "GOR-405", Title: "closed loggers keep a goroutine", Severity: SeverityWarning,
			Categories: []string{"logger-goroutine"},
			Doc:        "The first write of a lumberjack.Logger starts a goroutine that Close does not end. One for each log file is normal; one for each job or reload is a leak.",
			Sources:    []string{"natefinch/lumberjack#205", "natefinch/lumberjack#56"},
			Advice:     "Keep one Logger for each file and call Rotate, instead of making one per job.",
			Verdict:    VerdictLeak, Blame: "gopkg.in/natefinch/lumberjack.v2.(*Logger).millRun",
			Match: Match{Leaf: Regexp(`/lumberjack(\.v2)?(/v\d+)?\.\(\*Logger\)\.millRun$`), MinCount: 5},
		},
		{
			ID: "GOR-406", Title: "file watchers are not closed", Severity: SeverityWarning,
			Categories: []string{"fd-fsnotify"},
			Doc:        "Each fsnotify.Watcher has a goroutine and, on Linux, an inotify descriptor, of which a user has 128 by default. A few are normal.",
			Sources:    []string{"github.com/fsnotify/fsnotify"},
			Advice:     "Close the watcher, or keep one and call Add and Remove.",
			Verdict:    VerdictLeak, Blame: "github.com/fsnotify/fsnotify.NewWatcher",
			Companions: []Pattern{Prefix("github.com/fsnotify/fsnotify.")},
			Match:      Match{Frames: []Pattern{Regexp(`^github\.com/fsnotify/fsnotify\.\(\*(inotify|Watcher|kqueue|readDirChangesW)\)\.readEvents$`)}, MinCount: 10},
		},
		{
			ID: "GOR-407", Title: "database handles and sessions are made per call", Severity: SeverityWarning,
			Categories: []string{"client-session-per-reconcile"},
			Doc:        "A client library's background goroutine runs ten times or more. Such clients are pools or sessions that are meant to be made once.",
			Sources:    []string{"database/sql.Open", "vmware/govmomi"},
			Advice:     "Make the client once and share it; where a reconcile must make one, close it or log out on every path.",
			Verdict:    VerdictLeak,
			Match: Match{Leaf: Regexp(`^database/sql\.\(\*DB\)\.connection(Opener|Resetter|Cleaner)$` +
				`|^github\.com/vmware/govmomi/.*[kK]eep[aA]live` +
				`|^go\.mongodb\.org/mongo-driver/(v2/)?x/mongo/driver/topology\.` +
				`|^github\.com/(go-)?redis/.*pool\.` +
				`|^github\.com/go-ldap/ldap(/v\d+)?\.\(\*Conn\)\.` +
				`|^github\.com/nats-io/nats\.go\.\(\*Conn\)\.` +
				`|^github\.com/(Shopify|IBM)/sarama\.` +
				`|^github\.com/(streadway/amqp|rabbitmq/amqp091-go)\.` +
				`|^github\.com/gophercloud/|^github\.com/aws/aws-sdk-go`), MinCount: 10},
		},
		{
			ID: "GOR-408", Title: "goroutines hold threads in C calls", Severity: SeverityWarning,
			Categories: []string{"cgo-thread"},
			Doc:        "Twenty or more goroutines are inside a call into C. Each holds an operating system thread, which a dump of goroutines shows only so.",
			Sources:    []string{"cmd/cgo", "runtime/cgocall.go"},
			Advice:     "Bound the calls with a semaphore, and give the C side a timeout.",
			Verdict:    VerdictLeak,
			Match:      Match{Frames: []Pattern{Regexp(`\._Cfunc_|^_Cfunc_|^runtime\.cgocall$|\._C2func_`)}, MinCount: 20},
		},
	}
}
