package leakguard_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/leakguard/leakguard/probes/clientgo"
)

// The programs of this file are about what the manager's probes keep account of. What they count grows and then stays, or
// goes on at a rate of its own, which is no leak.

// scan is the time between two samples.
const scan = 10 * second

// client is an HTTP client that the manager's probes know. A nil transport is one of its own.
func (p *env) client(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = &http.Transport{}
	}
	_, instrumented := p.mgr.Instrument(nil)
	o := cluster.Options{HTTPClient: &http.Client{Transport: transport}}
	instrumented(&o)
	return o.HTTPClient
}

// cache gives what makes the informers of a cache of its own that the manager's probes know.
func (p *env) cache() clientgo.NewInformerFunc {
	_, instrumented := p.mgr.Instrument(nil)
	var o cluster.Options
	instrumented(&o)
	return o.Cache.NewInformer
}

// informs runs an informer of a cache until ctx ends.
func (p *env) informs(ctx context.Context, cache clientgo.NewInformerFunc) {
	i := cache(idleServer(), &corev1.Pod{}, time.Hour, toolscache.Indexers{})
	p.goes(func() { i.RunWithContext(ctx) })
}

// streams serves one line, and for a watch then nothing until ctx ends.
func streams(ctx context.Context) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello\n")
		if r.URL.Query().Get("watch") == "" {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-ctx.Done():
		}
	}))
}

// opened are bodies to be closed when a program ends.
type opened struct {
	mu     sync.Mutex
	bodies []io.Closer
}

// open asks for a page and leaves the answer open.
func (o *opened) open(ctx context.Context, c *http.Client, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	if res, err := c.Do(req); err == nil { //nolint:bodyclose // by close
		o.mu.Lock()
		o.bodies = append(o.bodies, res.Body)
		o.mu.Unlock()
	}
}

func (o *opened) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range o.bodies {
		_ = b.Close()
	}
}

// leakingAccounted are programs that leak what is counted.
func leakingAccounted() []program {
	return []program{
		{"leak-accounted-body", true, func(ctx context.Context, p *env) {
			client := p.client(noServer{})
			p.leaks(ctx, func(ctx context.Context) { new(opened).open(ctx, client, "http://example.com/page") })
		}},
		{"leak-accounted-informer", true, func(ctx context.Context, p *env) {
			cache := p.cache()
			p.leaks(ctx, func(context.Context) { p.goes(func() { leakAccountedInformer(ctx, cache) }) })
		}},
	}
}

func leakAccountedInformer(ctx context.Context, cache clientgo.NewInformerFunc) {
	cache(idleServer(), &corev1.Secret{}, time.Hour, toolscache.Indexers{}).RunWithContext(ctx)
}

// noServer answers without a connection.
type noServer struct{}

func (noServer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("hello"))}, nil
}

// benignAccounted are programs whose counts grow and stay.
func benignAccounted() []program {
	const watch = "/api/v1/pods?watch=true"
	return []program{
		{"cluster-fleet", false, func(ctx context.Context, p *env) {
			every(ctx, scan, func(n int) {
				if n < 40 {
					p.informs(ctx, p.cache())
				}
			})
		}},
		{"informers-that-warm-up", false, func(ctx context.Context, p *env) {
			cache := p.cache()
			every(ctx, scan, func(n int) {
				if n < 8 {
					p.informs(ctx, cache)
				}
			})
		}},
		{"watches-that-warm-up", false, func(ctx context.Context, p *env) {
			server, bodies, client := streams(ctx), &opened{}, p.client(nil)
			every(ctx, scan, func(n int) {
				if n < 8 {
					bodies.open(ctx, client, server.URL+watch)
				}
			})
			bodies.close()
			server.Close()
		}},
		{"watch-per-tenant", false, func(ctx context.Context, p *env) { // nothing is known of tenants
			server, bodies, client := streams(ctx), &opened{}, p.client(nil)
			have := map[int]bool{}
			p.reconciles(ctx, 40, func(ctx context.Context, tenant int) {
				if !have[tenant] {
					have[tenant] = true
					bodies.open(ctx, client, server.URL+watch+"&labelSelector=tenant="+strconv.Itoa(tenant))
				}
			})
			bodies.close()
			server.Close()
		}},
		{"same-watch-per-tenant", false, func(ctx context.Context, p *env) {
			server, bodies, client := streams(ctx), &opened{}, p.client(nil)
			have := map[int]bool{}
			p.reconciles(ctx, 20, func(ctx context.Context, tenant int) {
				if !have[tenant] {
					have[tenant] = true
					bodies.open(ctx, client, server.URL+watch)
				}
			})
			bodies.close()
			server.Close()
		}},
		{"mapper-reload", false, func(ctx context.Context, p *env) {
			server, transport := streams(ctx), &http.Transport{}
			client := p.client(transport)
			n := 0
			p.reconciles(ctx, 5, func(ctx context.Context, _ int) {
				if n++; n <= 60 {
					fetch(ctx, client, server.URL+"/apis")
				}
			})
			transport.CloseIdleConnections()
			server.Close()
		}},
		{"periodic-discovery", false, func(ctx context.Context, p *env) {
			server, transport := streams(ctx), &http.Transport{}
			client := p.client(transport)
			every(ctx, 5*second, func(int) { fetch(ctx, client, server.URL+"/apis") })
			transport.CloseIdleConnections()
			server.Close()
		}},
		{"client-per-tenant", false, func(ctx context.Context, p *env) {
			server := streams(ctx)
			var made []*http.Transport
			clients := map[int]*http.Client{}
			p.reconciles(ctx, 20, func(ctx context.Context, tenant int) {
				if clients[tenant] == nil {
					made = append(made, &http.Transport{IdleConnTimeout: time.Minute})
					clients[tenant] = p.client(made[len(made)-1])
				}
				fetch(ctx, clients[tenant], server.URL)
			})
			for _, t := range made {
				t.CloseIdleConnections()
			}
			server.Close()
		}},
	}
}
