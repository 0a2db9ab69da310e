package leakguard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/examples/operator/miniapi"
	"github.com/leakguard/leakguard/leakguard"
)

// The tests of this file run a real manager against an API server over HTTPS, in real time because the sockets need it;
// Scale makes minutes seconds.
const scale = 0.02

// apiServer runs an API server until the test ends, with more than the built-in resources where that is asked for.
func apiServer(t *testing.T, more ...miniapi.Resource) *rest.Config {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan miniapi.Identity, 1), make(chan error, 1)
	dir := t.TempDir()
	go func() {
		done <- miniapi.Serve(ctx, dir, func(id miniapi.Identity) { ready <- id }, append(miniapi.Builtins(), more...)...)
	}()
	var cfg *rest.Config
	t.Cleanup(func() {
		if cfg != nil {
			closeIdle(t, cfg)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("API server: %v", err)
		}
	})
	select {
	case id := <-ready:
		cfg = id.RESTConfig()
		return cfg
	case err := <-done:
		done <- nil
		t.Fatalf("API server: %v", err)
	}
	return nil
}

// closeIdle closes the connections that all clients of a server share, so that the server need not wait for them.
func closeIdle(t *testing.T, cfg *rest.Config) {
	t.Helper()
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	utilnet.CloseIdleConnectionsFor(transport)
}

// run starts a manager and gives the function that stops it and waits.
func run(t *testing.T, mgr manager.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("manager: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// eventually waits until what it is given holds, for at most a minute.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			t.Fatalf("a minute has passed and still not: %s", what)
		case <-tick.C:
		}
	}
}

// options are the manager's options of a test; its metrics are served on a free port of the loopback interface.
func options(t *testing.T) (ctrl.Options, string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	no := true
	o := ctrl.Options{Metrics: metricsserver.Options{BindAddress: address}, Logger: logr.Discard()}
	o.Controller.SkipNameValidation = &no
	return o, address
}

// churn is a reconciler that asks for itself again at once and may leak.
type churn struct {
	client.Client
	leak  atomic.Bool
	block chan struct{}
	runs  atomic.Int64
}

func (c *churn) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	c.runs.Add(1)
	var cm corev1.ConfigMap
	if err := c.Get(ctx, req.NamespacedName, &cm); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if c.leak.Load() {
		go c.wait() // nobody ever ends it
	} else {
		done := make(chan struct{})
		go func() { defer close(done) }()
		<-done
	}
	return reconcile.Result{RequeueAfter: 20 * time.Millisecond}, nil
}

func (c *churn) wait() { <-c.block }

func createMaps(t *testing.T, cfg *rest.Config, n int) {
	t.Helper()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("map-%d", i)}}
		if err := c.Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
}

func get(t *testing.T, url, agent string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", agent)
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// lines collects log lines.
type lines struct {
	mu  sync.Mutex
	out []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.out = append(l.out, prefix+" "+args)
	}, funcr.Options{})
}

func (l *lines) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.out {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

// TestNewManagerFindsTheLeakingController runs a leaking and a clean controller beside each other.
func TestNewManagerFindsTheLeakingController(t *testing.T) {
	cfg := apiServer(t)
	opts, address := options(t)
	registry := prometheus.NewRegistry()
	var log lines
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: scale, Registerer: registry, Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	leaky := &churn{Client: mgr.GetClient(), block: make(chan struct{})}
	leaky.leak.Store(true)
	clean := &churn{Client: mgr.GetClient()}
	for name, r := range map[string]reconcile.Reconciler{"leaky": leaky, "clean": clean} {
		if err := ctrl.NewControllerManagedBy(mgr).Named(name).For(&corev1.ConfigMap{}).Complete(r); err != nil {
			t.Fatal(err)
		}
	}
	createMaps(t, cfg, 5)
	stop := run(t, mgr)
	guard := mgr.Guard()
	eventually(t, "a finding fires", func() bool { return guard.Report().Firing() > 0 })
	report := guard.Report()
	f := report.Findings[0]
	if f.Controller != "leaky" || !strings.HasSuffix(f.Culprit.Function, "(*churn).wait") || !strings.HasSuffix(f.Culprit.File, "manager_test.go") || f.WaitReason != "chan receive" {
		t.Errorf("got %s", f.String())
	}
	for _, other := range report.Findings[1:] {
		t.Errorf("got another finding: %s: %s", other.String(), other.Reason)
	}
	if n := log.count("leak found"); n != 1 {
		t.Errorf("got %d log lines of the leak, want 1", n)
	}
	checkPage(t, address, f)
	checkMetrics(t, registry)

	leaky.leak.Store(false)
	close(leaky.block)
	eventually(t, "the finding resolves", func() bool {
		r := guard.Report()
		return r.Firing() == 0 && r.Findings[0].State == leakguard.StateResolved
	})
	if n := log.count("leak resolved"); n != 1 {
		t.Errorf("got %d log lines of the end of the leak, want 1", n)
	}
	if err := guard.Check(nil); err != nil {
		t.Errorf("Check: %v", err)
	}
	stop()
	if got, err := registry.Gather(); err != nil || len(got) > 0 {
		t.Errorf("after the stop got %d metrics and %v, want none", len(got), err)
	}
}

func checkPage(t *testing.T, address string, want leakguard.Finding) {
	t.Helper()
	url := "http://" + address + leakguard.PagePath
	var r leakguard.Report
	if err := json.Unmarshal([]byte(get(t, url, "browser")), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) == 0 || r.Findings[0].Fingerprint != want.Fingerprint || len(r.Findings[0].Stacks) == 0 {
		t.Errorf("the page has %v, want %s with a stack", r.Findings, want.Fingerprint)
	}
	text := get(t, url, "curl/8")
	for _, part := range []string{"1 firing", "controller=leaky", "(*churn).wait", "manager_test.go"} {
		if !strings.Contains(text, part) {
			t.Errorf("the text page lacks %q:\n%s", part, text)
		}
	}
}

func checkMetrics(t *testing.T, registry *prometheus.Registry) {
	t.Helper()
	problems, err := promlintGather(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == "leakguard_findings" && labels["controller"] == "leaky" && labels["state"] == "firing" && m.GetGauge().GetValue() == 1 {
				found = true
			}
		}
	}
	if !found {
		t.Error("no metric says that the controller leaky has a firing finding")
	}
}

func promlintGather(g prometheus.Gatherer) ([]promlint.Problem, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, err
	}
	return promlint.NewWithMetricFamilies(families).Lint()
}

// TestPlainManager leaks under a guard that was only added: no controller is instrumented.
func TestPlainManager(t *testing.T) {
	cfg := apiServer(t)
	opts, _ := options(t)
	opts.LeaderElection, opts.LeaderElectionID, opts.LeaderElectionNamespace = true, "test", "default"
	mgr, err := ctrl.NewManager(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	guard := leakguard.New(leakguard.Options{Scale: scale, Registerer: prometheus.NewRegistry()})
	if err := mgr.Add(guard); err != nil {
		t.Fatal(err)
	}
	leaky := &churn{Client: mgr.GetClient(), block: make(chan struct{})}
	leaky.leak.Store(true)
	if err := ctrl.NewControllerManagedBy(mgr).Named("plain").For(&corev1.ConfigMap{}).Complete(leaky); err != nil {
		t.Fatal(err)
	}
	createMaps(t, cfg, 3)
	stop := run(t, mgr)
	eventually(t, "a finding fires", func() bool { return guard.Report().Firing() > 0 })
	if f := guard.Report().Findings[0]; !strings.HasSuffix(f.Culprit.Function, "(*churn).wait") || f.Rule != "growth" {
		t.Errorf("got %s", f.String())
	}
	stop()
	close(leaky.block)
}

// TestStandbySamples holds the lease elsewhere: the guard must run on a replica that waits.
func TestStandbySamples(t *testing.T) {
	cfg := apiServer(t)
	opts, _ := options(t)
	opts.LeaderElection, opts.LeaderElectionID, opts.LeaderElectionNamespace = true, "test", "default"
	leader, err := ctrl.NewManager(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	run(t, leader)
	<-leader.Elected()
	opts, _ = options(t)
	opts.LeaderElection, opts.LeaderElectionID, opts.LeaderElectionNamespace = true, "test", "default"
	standby, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: scale, Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	run(t, standby)
	eventually(t, "the standby samples", func() bool { return standby.Guard().Report().Sampling.Taken > 3 })
	select {
	case <-standby.Elected():
		t.Error("the standby was elected: the test shows nothing")
	default:
	}
}

// TestManagerTwiceInOneProcess stops a manager and starts another one with a guard.
func TestManagerTwiceInOneProcess(t *testing.T) {
	cfg := apiServer(t)
	registry := prometheus.NewRegistry()
	for range 2 {
		opts, _ := options(t)
		mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: scale, Registerer: registry})
		if err != nil {
			t.Fatal(err)
		}
		if err := ctrl.NewControllerManagedBy(mgr).Named("twice").For(&corev1.ConfigMap{}).Complete(&churn{Client: mgr.GetClient()}); err != nil {
			t.Fatal(err)
		}
		stop := run(t, mgr)
		eventually(t, "two samples", func() bool { return mgr.Guard().Report().Sampling.Taken >= 2 })
		stop()
	}
}

func TestControllersThatCannotBeInstrumentedAreNamed(t *testing.T) {
	cfg := apiServer(t)
	opts, _ := options(t)
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: scale, Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	typed := reconcile.TypedFunc[string](func(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, nil })
	if _, err := controller.NewTyped("typed", mgr, controller.TypedOptions[string]{Reconciler: typed}); err != nil {
		t.Fatal(err)
	}
	plain := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	if _, err := controller.New("plain", mgr, controller.Options{Reconciler: plain}); err != nil {
		t.Fatal(err)
	}
	run(t, mgr)
	eventually(t, "a sample", func() bool { return mgr.Guard().Report().Sampling.Taken > 0 })
	got := map[string]bool{}
	for _, c := range mgr.Guard().Report().Controllers {
		got[c.Name] = c.Instrumented
	}
	if instrumented, known := got["typed"]; !known || instrumented {
		t.Errorf("controller typed: got known %t, instrumented %t; want known and not instrumented", known, instrumented)
	}
	if !got["plain"] {
		t.Error("controller plain is not instrumented: has controller-runtime lost the field Do?")
	}
	if n := strings.Join(mgr.Guard().Report().Notices, "\n"); strings.Count(n, `"typed"`) != 1 {
		t.Errorf("got notices %q, want one about typed", n)
	}
}

func TestSecondGuardIsRefused(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	first := leakguard.New(leakguard.Options{Registerer: prometheus.NewRegistry()})
	done := make(chan error, 1)
	go func() { done <- first.Start(ctx) }()
	eventually(t, "the first guard samples", func() bool { return first.Report().Sampling.Taken > 0 })
	err := leakguard.New(leakguard.Options{Registerer: prometheus.NewRegistry()}).Start(ctx)
	if !bytes.Contains(fmt.Append(nil, err), []byte("another guard")) {
		t.Errorf("got %v, want ErrSecondGuard", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
