package probes_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/probes"
)

// background is the context of no span.
var background = context.Background()

// api is a transport under account in front of a server that streams on watches until it or the client goes.
type api struct {
	t         *testing.T
	url       string
	scopes    *probes.Scopes
	objects   *probes.ObjectIndex
	transport *probes.Transport
	rt        http.RoundTripper
	bodies    []io.Closer
	end       chan struct{} // ends all watches when closed
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{t: t, scopes: probes.NewScopes(), end: make(chan struct{})}
	a.objects = probes.NewObjectIndex(a.scopes)
	a.transport = probes.NewTransport(probes.LedgerOptions{Scopes: a.scopes, Objects: a.objects, Grace: -1})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello")
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-a.end:
			}
		}
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	a.url = srv.URL
	a.rt = a.transport.Wrap(srv.Client().Transport)
	t.Cleanup(func() {
		for _, b := range a.bodies {
			_ = b.Close()
		}
		srv.Client().CloseIdleConnections()
		srv.Close()
	})
	return a
}

// reconcile runs f as a reconcile of ns/name.
func (a *api) reconcile(name string, f func(ctx context.Context)) {
	app := a.scopes.Scope("app")
	ctx, span := app.Begin(a.t.Context(), app.Object("ns", name))
	defer span.End()
	f(ctx)
}

// open sends a request and leaves the body open until the test ends.
func (a *api) open(ctx context.Context, path string) io.ReadCloser {
	resp := roundTrip(a.t, ctx, a.rt, a.url+path)
	a.bodies = append(a.bodies, resp.Body)
	return resp.Body
}

// leaks reads the probe and gives the leaked readings as "scope: resource count".
func (a *api) leaks() (out []string) {
	for _, r := range a.transport.Read(background, nil) {
		if r.Leaked {
			out = append(out, fmt.Sprintf("%s: %s %v", r.Scope, r.Resource, r.Count))
		}
	}
	return out
}

func (a *api) want(step string, want ...string) {
	a.t.Helper()
	if diff := cmp.Diff(want, a.leaks()); diff != "" {
		a.t.Errorf("%s: leaks (-want +got):\n%s", step, diff)
	}
}

const (
	pods     = "/api/v1/namespaces/ns/pods"
	watchAll = pods + "?watch=true&resourceVersion="
)

// TestBodies has each way to treat the body of a response, three times.
func TestBodies(t *testing.T) {
	for _, tt := range []struct {
		name  string
		path  string
		treat func(t *testing.T, body io.ReadCloser)
		want  []string
	}{
		{"left open", pods, func(*testing.T, io.ReadCloser) {}, []string{"app: response bodies left open 3"}},
		{"closed unread", pods, func(t *testing.T, b io.ReadCloser) {
			t.Helper()
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}, nil},
		{"read and closed", pods, func(t *testing.T, b io.ReadCloser) {
			t.Helper()
			if got, err := io.ReadAll(b); err != nil || string(got) != "hello" {
				t.Errorf("body %q, %v, want hello", got, err)
			}
			_ = b.Close()
		}, nil},
		{"read to the end and left open", pods, func(_ *testing.T, b io.ReadCloser) { _, _ = io.ReadAll(b) }, nil},
		{"watch left open", watchAll, func(*testing.T, io.ReadCloser) {}, []string{"app: watches left open 3"}},
		{"watch closed", watchAll, func(_ *testing.T, b io.ReadCloser) { _ = b.Close() }, nil},
		{"watch with a reader", watchAll, func(_ *testing.T, b io.ReadCloser) { _, _ = b.Read(make([]byte, 5)) }, []string{"app: watches left open 3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAPI(t)
			for i := range 3 {
				a.reconcile("a", func(ctx context.Context) { tt.treat(t, a.open(ctx, fmt.Sprint(tt.path, i))) })
			}
			a.leaks() // a body that was read since the last time is in use
			a.want("after the reconciles", tt.want...)
		})
	}
}

// TestWatchThatEndedIsOpen is the two ways in which a watch ends and leaks all the same: nobody calls Stop after the server
// has ended it, or after its context was cancelled.
func TestWatchThatEndedIsOpen(t *testing.T) {
	a := newAPI(t)
	var ended []io.ReadCloser
	for range 2 {
		a.reconcile("a", func(ctx context.Context) { ended = append(ended, a.open(ctx, watchAll)) })
		a.reconcile("b", func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			ended = append(ended, a.open(ctx, "/api/v1/configmaps?watch=1"))
		})
	}
	close(a.end)
	for _, b := range ended {
		_, _ = io.ReadAll(b)
	}
	a.want("after the end", "app: watches left open 2", "app: watches left open 2")
}

func TestBodyOfAReconcileInFlight(t *testing.T) {
	a := newAPI(t)
	a.reconcile("a", func(ctx context.Context) {
		for range 2 {
			a.open(ctx, pods)
		}
		a.want("while the reconcile runs") //nolint:contextcheck // of no span on purpose
	})
	a.want("after it", "app: response bodies left open 2")
}

// TestWatchesThatAreNoLeak keeps watches open beyond their reconciles for good reasons.
func TestWatchesThatAreNoLeak(t *testing.T) {
	a := newAPI(t)
	apps := storeOf{}
	a.objects.AddStore("App", apps.each)
	for i := range 12 { // one for each object
		name := fmt.Sprint("app-", i)
		apps[name] = true
		a.reconcile(name, func(ctx context.Context) {
			a.objects.Saw("app", "App", a.scopes.Object("ns", name))
			a.open(ctx, watchAll+"&fieldSelector=metadata.name="+name)
		})
	}
	a.reconcile("app-0", func(ctx context.Context) { a.open(ctx, "/apis/apps/v1/deployments?watch=true") }) // one for the process
	a.objects.Refresh(time.Now())
	a.want("all objects live")

	delete(apps, "app-1")
	delete(apps, "app-2")
	a.objects.Refresh(time.Now())
	a.want("two objects are gone, which is no proof")
	delete(apps, "app-3")
	a.objects.Refresh(time.Now())
	a.want("the watches of three objects outlive them", "app: watches left open 3")
}

// TestWatchesOfTheSame opens one watch of the same selection for each object, in turn for ever more of them, and one of several
// selections in each of two reconciles: only the second reconcile of an object opens what is open.
func TestWatchesOfTheSame(t *testing.T) {
	type step struct {
		object     int
		selections []int
		want       []string
	}
	var one []step
	for i := range 12 {
		one = append(one, step{i, []int{0}, nil})
	}
	for _, steps := range [][]step{
		append(one, step{3, []int{0}, []string{"app: watches left open 2"}}),
		{{1, []int{1, 2, 3, 4, 5, 6, 7, 8}, nil}, {1, []int{9}, []string{"app: watches left open 9"}}},
	} {
		a := newAPI(t)
		for i, s := range steps { // all from one place
			a.reconcile(strconv.Itoa(s.object), func(ctx context.Context) {
				for _, n := range s.selections {
					a.open(ctx, watchAll+"&labelSelector=n="+strconv.Itoa(n))
				}
			})
			a.want(fmt.Sprint("reconcile ", i, " of object ", s.object), s.want...)
		}
	}
}

// TestWatchesAboveTheObjects opens one watch more for each reconcile, all different.
func TestWatchesAboveTheObjects(t *testing.T) {
	a := newAPI(t)
	apps := storeOf{"x": true, "y": true, "z": true}
	a.objects.AddStore("App", apps.each)
	a.objects.Saw("app", "App", a.scopes.Object("ns", "x"))
	a.objects.Refresh(time.Now())
	for i := range 4 {
		a.want(fmt.Sprint(i, " watches for 3 objects"))
		a.reconcile(strconv.Itoa(i), func(ctx context.Context) {
			a.open(ctx, watchAll+"&labelSelector=n="+strconv.Itoa(i))
		})
	}
	a.want("4 watches for 3 objects", "app: watches left open 4")
}

// watchInBackground is a reconciler's method that passes no context on.
func (a *api) watchInBackground(path string) { a.open(background, path) }

// TestClaimedFunction finds the scope of a watch that was opened with a context of no span.
func TestClaimedFunction(t *testing.T) {
	a := newAPI(t)
	for i, step := range []struct {
		claim  bool
		during []string
		after  []string
	}{
		{false, nil, nil}, // nobody claims the function
		{true, nil, []string{"app: watches left open 2"}}, // during it, one of the two may be of the open span
		{true, []string{"app: watches left open 2"}, []string{"app: watches left open 3"}},
	} {
		if step.claim {
			a.scopes.Claim("github.com/leakguard/leakguard/probes_test.(*api).watchInBackground", "app")
		}
		a.reconcile("a", func(context.Context) {
			a.watchInBackground(watchAll)                              //nolint:contextcheck // of no span on purpose
			a.want(fmt.Sprint("during reconcile ", i), step.during...) //nolint:contextcheck // of no span on purpose
		})
		a.want(fmt.Sprint("after reconcile ", i), step.after...)
	}
	a.scopes.Claim("github.com/leakguard/leakguard/probes_test.(*api).watchInBackground", "another")
	a.want("two scopes claim it")
}

// TestSeveralWatches follows the watches of one selection that belong to no span.
func TestSeveralWatches(t *testing.T) {
	a := newAPI(t)
	var bodies []io.Closer
	for range 3 {
		bodies = append(bodies, a.open(t.Context(), watchAll))
	}
	counts := func() (n float64, climbing bool) {
		for _, r := range a.transport.Read(t.Context(), nil) {
			if r.Resource == "several: watch pods" {
				if r.Leaked {
					t.Errorf("%v watches are leaked, which a number cannot prove", r.Count)
				}
				return r.Count, r.Climbing
			}
		}
		return 0, false
	}
	for i, step := range []struct {
		open, shut int
		n          float64
		climbing   bool
	}{
		{0, 0, 3, false},
		{0, 0, 3, false},
		{1, 0, 4, false},
		{0, 1, 3, false},
		{1, 0, 4, false}, // restarts, which is no rise
		{1, 0, 5, false},
		{0, 0, 5, false},
		{2, 0, 7, false},
		{1, 0, 8, false},
		{1, 0, 9, false},
		{1, 0, 10, false},
		{1, 0, 11, false},
		{1, 0, 12, false},
		{1, 0, 13, false},
		{1, 0, 14, false},
		{0, 0, 14, false},
		{1, 0, 15, true},
		{0, 0, 15, true},
		{0, 14, 0, false},
	} {
		for range step.open {
			bodies = append(bodies, a.open(t.Context(), watchAll))
		}
		for range step.shut {
			_ = bodies[0].Close()
			bodies = bodies[1:]
		}
		if n, climbing := counts(); n != step.n || climbing != step.climbing {
			t.Errorf("step %d: %v watches, climbing %v, want %v, %v", i, n, climbing, step.n, step.climbing)
		}
	}
	a.open(t.Context(), "/api/v1/pods?watch=true&labelSelector=a%3Db")
	a.open(t.Context(), "/api/v1/pods?watch=true&labelSelector=a%3Dc")
	if n, _ := counts(); n != 0 {
		t.Errorf("watches of different selections: %v of one", n)
	}
}

// TestReadingOfABody is what a person gets to see.
func TestReadingOfABody(t *testing.T) {
	a := newAPI(t)
	for range 2 {
		a.reconcile("a", func(ctx context.Context) { a.open(ctx, "/apis/apps/v1/namespaces/secret/deployments/secret/status") })
	}
	for _, r := range a.transport.Read(t.Context(), nil) {
		if strings.Contains(fmt.Sprint(r), "secret") {
			t.Errorf("the reading names an object: %v", r)
		}
		if !r.Leaked {
			continue
		}
		if !strings.Contains(r.Reason, "GET deployments.apps/status") {
			t.Errorf("reason %q, want the verb and resource in it", r.Reason)
		}
		found := false
		for _, f := range r.Stack {
			found = found || strings.HasSuffix(f.Function, "probes_test.(*api).open")
		}
		if !found || r.Trap != "S1-05b" || r.Advice == "" || r.Probe != "" {
			t.Errorf("reading %+v, want the stack that opened the body, its trap and advice", r)
		}
		return
	}
	t.Error("no leaked reading")
}

// TestLateBodies closes bodies ten seconds after their reconciles: a job that ends is not leaked until it has lived three
// times as long as its like.
func TestLateBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := probes.NewScopes()
		transport := probes.NewTransport(probes.LedgerOptions{Scopes: scopes, Grace: 5 * time.Second})
		rt := transport.Wrap(roundTripFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{Body: io.NopCloser(strings.NewReader("x"))}, nil
		}))
		open := func() (body io.Closer) {
			scopes.Scope("app").Do(t.Context(), func(ctx context.Context) { body = roundTrip(t, ctx, rt, "http://example.com/").Body }) //nolint:bodyclose // left open on purpose
			return body
		}
		leaked := func() (n float64) {
			for _, r := range transport.Read(t.Context(), nil) {
				if r.Leaked {
					n += r.Count
				}
			}
			return n
		}
		var bodies [4]io.Closer
		for i := range bodies {
			bodies[i] = open()
		}
		time.Sleep(4 * time.Second)
		if n := leaked(); n != 0 {
			t.Errorf("within the grace %v are leaked", n)
		}
		time.Sleep(6 * time.Second)
		if n := leaked(); n != 4 {
			t.Errorf("%v are leaked, want 4: nothing says that they will be closed", n)
		}
		_ = bodies[0].Close()
		_ = bodies[1].Close()
		if n := leaked(); n != 0 {
			t.Errorf("%v are leaked although their like were closed ten seconds after their reconcile", n)
		}
		time.Sleep(20 * time.Second)
		if n := leaked(); n != 2 {
			t.Errorf("%v are leaked, want the 2 that lived three times as long", n)
		}
	})
}

// TestSwitchedProtocol leaves the connection of a 101 response as it is: its body can be written to.
func TestSwitchedProtocol(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = buf.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
		_ = buf.Flush()
		line, _ := bufio.NewReader(conn).ReadString('\n')
		_, _ = conn.Write([]byte(line))
	}))
	defer srv.Close()
	transport := probes.NewTransport(probes.LedgerOptions{})
	base := &http.Transport{DialContext: (&net.Dialer{}).DialContext}
	defer base.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	resp, err := transport.Wrap(base).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("the body is a %T and cannot be written to", resp.Body)
	}
	_, _ = conn.Write([]byte("hello\n"))
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("echo gives %q, %v", line, err)
	}
}

// TestTransportIsBounded opens more bodies than it may follow, and closes all, concurrently.
func TestTransportIsBounded(t *testing.T) {
	transport := probes.NewTransport(probes.LedgerOptions{MaxEntries: 10})
	rt := transport.Wrap(roundTripFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{Body: io.NopCloser(strings.NewReader("x"))}, nil
	}))
	count := func(resource string) float64 {
		for _, r := range transport.Read(t.Context(), nil) {
			if r.Resource == resource {
				return r.Count
			}
		}
		return 0
	}
	bodies := make(chan io.ReadCloser, 64)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 8 {
				bodies <- roundTrip(t, t.Context(), rt, "http://example.com/").Body //nolint:bodyclose // closed by those who receive it
				count("response bodies")
			}
		})
	}
	wg.Wait()
	if open, dropped := count("response bodies"), count("entries not tracked"); open != 10 || dropped != 54 {
		t.Errorf("%v open and %v not tracked, want 10 and 54", open, dropped)
	}
	for range 64 {
		wg.Go(func() {
			b := <-bodies
			_, _ = io.ReadAll(b)
			_ = b.Close()
			_ = b.Close()
		})
	}
	wg.Wait()
	if open := count("response bodies"); open != 0 {
		t.Errorf("%v open after all were closed", open)
	}
}

func TestTransportsMade(t *testing.T) {
	transport := probes.NewTransport(probes.LedgerOptions{})
	counts := func() (clients, bases float64) {
		for _, r := range transport.Read(t.Context(), nil) {
			switch r.Resource {
			case "HTTP clients made":
				clients = r.Count
			case "HTTP transports in use":
				bases = r.Count
			}
		}
		return clients, bases
	}
	if c, b := counts(); c != 0 || b != 0 {
		t.Errorf("%v clients and %v transports before the first", c, b)
	}
	shared, kept := &http.Transport{}, []*http.Transport{{}, {}}
	for range 5 {
		transport.Wrap(probes.Shield(shared)) // through another wrapper
	}
	wrapped := transport.Wrap(probes.Shield(transport.Wrap(shared)))
	if again := transport.Wrap(wrapped); again != wrapped {
		t.Error("what is wrapped already is wrapped again")
	}
	for _, base := range kept {
		transport.Wrap(base)
	}
	if c, b := counts(); c != 8 || b != 3 {
		t.Errorf("%v clients and %v transports, want 8 and 3", c, b)
	}
	_ = kept[1].DisableKeepAlives // both live until here
	_ = shared.DisableKeepAlives
}

// TestCulprit is blamed: the first call of the main module on the way out of the library.
func TestCulprit(t *testing.T) {
	a := newAPI(t)
	for range 2 {
		a.reconcile("a", func(ctx context.Context) { a.open(ctx, pods) })
	}
	for _, r := range a.transport.Read(t.Context(), nil) {
		if !r.Leaked {
			continue
		}
		if r.Culprit.Function != "github.com/leakguard/leakguard/probes_test.roundTrip" || !strings.HasPrefix(r.Culprit.Position(), "probes/shield_test.go:") {
			t.Errorf("culprit %v, want the line in roundTrip", r.Culprit)
		}
		return
	}
	t.Error("no leak")
}

// TestManyRequests leaks bodies after so many clean requests that not every site is taken: one finding, with its site.
func TestManyRequests(t *testing.T) {
	a := newAPI(t)
	rt := a.rt
	for range 200 {
		_ = roundTrip(t, t.Context(), rt, a.url+pods).Body.Close()
	}
	leak := func() {
		for range 40 {
			a.reconcile("a", func(ctx context.Context) { a.open(ctx, pods) })
		}
	}
	leak()
	a.leaks() // from now on every site is taken
	leak()
	placed := 0
	for _, r := range a.transport.Read(t.Context(), nil) {
		if r.Leaked && len(r.Stack) == 0 {
			t.Errorf("a finding without a site beside the one with it: %v", r)
		}
		if r.Leaked && len(r.Stack) > 0 {
			placed += int(r.Count)
		}
	}
	if placed < 40 {
		t.Errorf("%d leaked bodies with their site, want at least the last 40", placed)
	}
}

// TestWatchesShapes opens and closes watches of one selection that belong to no span.
func TestWatchesShapes(t *testing.T) {
	wantShapes(t, func(t *testing.T) func(n int) probes.Reading {
		t.Helper()
		transport := probes.NewTransport(probes.LedgerOptions{})
		rt := transport.Wrap(roundTripFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{Body: io.NopCloser(strings.NewReader("x"))}, nil
		}))
		var open []io.Closer
		return func(n int) probes.Reading {
			t.Helper()
			for len(open) < n {
				open = append(open, roundTrip(t, t.Context(), rt, "http://example.com"+watchAll).Body) //nolint:bodyclose // below
			}
			for len(open) > n {
				_ = open[0].Close()
				open = open[1:]
			}
			r, ok := find(t, transport, "several: watch pods")
			if !ok {
				t.Fatalf("%d watches are not counted", n)
			}
			return r
		}
	})
}

// TestLedgerShapes opens a watch for each of ever more tenants, of which nothing is known, in reconciles.
func TestLedgerShapes(t *testing.T) {
	wantShapes(t, func(t *testing.T) func(n int) probes.Reading {
		t.Helper()
		scopes := probes.NewScopes()
		ledger := probes.NewLedger("watches", probes.LedgerOptions{Scopes: scopes, Grace: -1})
		kind := &probes.Kind{Resource: "watches", Closed: "stopped"}
		var open []*probes.Entry
		tenants := 0
		return func(n int) probes.Reading {
			t.Helper()
			for len(open) < n {
				tenants++
				app := scopes.Scope("app")
				ctx, span := app.Begin(t.Context(), app.Object("ns", strconv.Itoa(tenants)))
				open = append(open, ledger.Open(ctx, kind, strconv.Itoa(tenants), probes.CallSite(0)))
				span.End()
			}
			for len(open) > n {
				open[0].Close()
				open = open[1:]
			}
			r, _ := find(t, ledger, "watches left open") // none where some were closed late just now
			return r
		}
	})
}
