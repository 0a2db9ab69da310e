package stackmatch

// grpcRules are about gRPC and OpenTelemetry.
func grpcRules() []Rule {
	return []Rule{
		{
			ID: "GOR-402", Title: "gRPC connections as those of etcd clients are not closed", Severity: SeverityWarning,
			Categories: []string{"etcd-client-unclosed", "grpc-clientconn-unclosed"},
			Doc: "Each etcd client is a gRPC connection of its own: a reader, a writer and its serializers. " +
				"They stay when an error path returns without Close. No frame is etcd's own; what tells is that its connections resolve no names by DNS, as other targets without DNS do not either.",
			Sources: []string{"kubernetes-sigs/cluster-api#3482", "kubernetes-sigs/cluster-api#6540", "aws/etcdadm-controller#42"},
			Advice:  "Close the clientv3.Client on every path, or keep one for each cluster.",
			Verdict: VerdictLeak, Enough: 30, Blame: "google.golang.org/grpc/internal/transport.NewHTTP2Client",
			Companions: []Pattern{
				Exact("google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run"),
				Regexp(`^google\.golang\.org/grpc/internal/transport\.(\(\*loopyWriter\)\.run|\(\*http2Client\)\.keepalive)$`),
				Regexp(`^google\.golang\.org/grpc\.\(\*(ccBalancerWrapper|ccResolverWrapper|addrConn)\)\.`),
				Prefix("google.golang.org/grpc/internal/resolver/"),
			},
			Match: Match{Frames: []Pattern{Exact("google.golang.org/grpc/internal/transport.(*http2Client).reader")}, MinCount: 10, Predicate: "like-etcd-clients"},
		},
		{
			ID: "GOR-401", Title: "gRPC client connections are not closed", Severity: SeverityWarning,
			Categories: []string{"grpc-clientconn-unclosed"},
			Doc:        "Each ClientConn has a reader, a writer and its serializers, three to one to one. The stack is gRPC's alone; an etcd client that is not closed looks the same.",
			Sources:    []string{"google.golang.org/grpc/internal/transport/http2_client.go"},
			Advice:     "Keep one ClientConn for each target and share it, or close it on every path, error paths included.",
			Verdict:    VerdictLeak, Enough: 50, Blame: "google.golang.org/grpc/internal/transport.NewHTTP2Client",
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
	}
}

// libraryRules are about other libraries that operators use and that start goroutines of their own.
func libraryRules() []Rule {
	return []Rule{
		{
			ID: "GOR-405", Title: "closed loggers keep a goroutine", Severity: SeverityWarning,
			Categories: []string{"logger-goroutine"},
			Doc:        "The first write of a lumberjack.Logger starts a goroutine that Close does not end. One for each log file is normal; one for each job or reload is a leak.",
			Sources:    []string{"natefinch/lumberjack#205", "natefinch/lumberjack#56"},
			Advice:     "Keep one Logger for each file and call Rotate, instead of making one per job.",
			Verdict:    VerdictLeak, Enough: 20, Blame: "gopkg.in/natefinch/lumberjack.v2.(*Logger).millRun",
			Match: Match{Leaf: Regexp(`/lumberjack(\.v2)?(/v\d+)?\.\(\*Logger\)\.millRun$`), MinCount: 5},
		},
		{
			ID: "GOR-406", Title: "file watchers are not closed", Severity: SeverityWarning,
			Categories: []string{"fd-fsnotify"},
			Doc:        "Each fsnotify.Watcher has a goroutine and, on Linux, an inotify descriptor, of which a user has 128 by default. A few are normal.",
			Sources:    []string{"github.com/fsnotify/fsnotify"},
			Advice:     "Close the watcher, or keep one and call Add and Remove.",
			Verdict:    VerdictLeak, Enough: 30, Blame: "github.com/fsnotify/fsnotify.NewWatcher",
			Companions: []Pattern{Prefix("github.com/fsnotify/fsnotify.")},
			Match:      Match{Frames: []Pattern{Regexp(`^github\.com/fsnotify/fsnotify\.\(\*(inotify|Watcher|kqueue|readDirChangesW)\)\.readEvents$`)}, MinCount: 10},
		},
		{
			ID: "GOR-407", Title: "database handles or sessions are made per call", Severity: SeverityWarning,
			Categories: []string{"client-session-per-reconcile"},
			Doc:        "Each database/sql.DB has one goroutine that opens connections, and each govmomi session one that keeps it alive. Such a handle is a pool that is meant to be made once.",
			Sources:    []string{"database/sql.Open", "vmware/govmomi"},
			Advice:     "Make the client once and share it; where a reconcile must make one, close it or log out on every path.",
			Verdict:    VerdictLeak, Enough: 20,
			Match: Match{
				Frames:   []Pattern{Regexp(`^database/sql\.\(\*DB\)\.connectionOpener$|^github\.com/vmware/govmomi/.*[kK]eep[aA]live`)},
				MinCount: 8,
			},
		},
		{
			ID: "GOR-409", Title: "many sessions of a client library", Severity: SeverityWarning,
			Categories: []string{"client-session-per-reconcile"},
			Doc:        "A client library's goroutines, of which each connection or session has some, run thirty times or more. A big pool looks the same; clients that are made per call grow.",
			Sources:    []string{"go.mongodb.org/mongo-driver", "github.com/redis/go-redis", "github.com/go-ldap/ldap", "github.com/nats-io/nats.go", "github.com/IBM/sarama", "github.com/rabbitmq/amqp091-go"},
			Advice:     "Make the client once and share it; where a reconcile must make one, close it or log out on every path.",
			Verdict:    VerdictSuspect, Growing: VerdictLeak,
			Match: Match{
				Frames: []Pattern{Regexp(`^go\.mongodb\.org/mongo-driver/` +
					`|^github\.com/(go-)?redis/` +
					`|^github\.com/go-ldap/ldap(/v\d+)?\.\(\*Conn\)\.` +
					`|^github\.com/nats-io/nats\.go\.\(\*Conn\)\.` +
					`|^github\.com/(Shopify|IBM)/sarama\.` +
					`|^github\.com/(streadway/amqp|rabbitmq/amqp091-go)\.` +
					`|^github\.com/gophercloud/|^github\.com/aws/aws-sdk-go`)},
				MinCount: 30, Predicate: "library-daemon",
			},
		},
	}
}

// threadRules are about goroutines that keep an operating system thread each.
func threadRules() []Rule {
	return []Rule{
		{
			ID: "GOR-408", Title: "goroutines hold threads in C calls", Severity: SeverityWarning,
			Categories: []string{"cgo-thread"},
			Doc:        "Goroutines are inside a call into C, or were entered from C. Each holds an operating system thread, which a dump of goroutines shows only so. Name lookups do not count.",
			Sources:    []string{"cmd/cgo", "runtime/cgocall.go"},
			Advice:     "Bound the calls with a semaphore, and give the C side a timeout.",
			Verdict:    VerdictLeak, Enough: 40,
			Match: Match{Frames: []Pattern{Regexp(`\._Cfunc_|^_Cfunc_|^runtime\.cgocall$|\._C2func_|^_cgoexp_`)}, Without: []Pattern{Prefix("net.")}, MinCount: 10},
		},
		{
			ID: "GOR-410", Title: "goroutines hold threads for good", Severity: SeverityWarning,
			Categories: []string{"cgo-thread"},
			Doc:        "Ten or more goroutines of one place are locked to their thread and wait: each keeps an operating system thread for as long as it lives.",
			Sources:    []string{"runtime.LockOSThread"},
			Advice:     "Call UnlockOSThread, or let the goroutine end; keep one locked goroutine and send it work.",
			Verdict:    VerdictLeak, Enough: 40,
			Match: Match{MinCount: 10, Predicate: "locked-to-thread"},
		},
	}
}
