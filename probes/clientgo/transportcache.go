package clientgo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/metrics"

	"github.com/leakguard/leakguard/probes"
)

// TransportCacheName is the name of [TransportCache] as a probe.
const TransportCacheName = "transport_cache"

// TransportCache counts the transports that client-go makes. A client whose configuration is like that of an earlier one
// shares its transport; one whose TLS settings differ each time (miss), or that has a Proxy function or files of its own
// (uncacheable), opens connections of its own, which live on for as long as they are idle. It is a [probes.Probe].
type TransportCache struct {
	main    string
	climb   probes.Climb
	calls   metrics.TransportCreateCallsMetric // what was there before
	entries metrics.TransportCacheMetric
	hits    atomic.Uint64
	size    atomic.Int64
	scopes  atomic.Pointer[probes.Scopes] // nil when nobody has told

	mu    sync.Mutex
	sites map[uint64]*madeTransports
}

// madeTransports is the transports of one site.
type madeTransports struct {
	site  probes.Site
	scope string // whose work makes them; "" when unknown
	n     int
}

// maxSites bounds the sites that are told apart.
const maxSites = 1024

// HookTransportCache puts itself between client-go and the metrics it reports to, which go on working. Call it once, before
// the first client is made: client-go reads the hook without a lock. main is the main module's path, "" for the
// running program's. Whoever registers metrics with client-go later takes its place, and it counts nothing more.
func HookTransportCache(main string) *TransportCache {
	c := &TransportCache{
		main:  cmp.Or(main, probes.NewLedger("", probes.LedgerOptions{}).Options().MainModule),
		calls: metrics.TransportCreateCalls, entries: metrics.TransportCacheEntries, sites: map[uint64]*madeTransports{},
	}
	metrics.TransportCreateCalls = c
	metrics.TransportCacheEntries = cacheSize{c}
	return c
}

// SetScopes tells which scopes there are, so that what makes transports again and again has a name; nil for none.
func (c *TransportCache) SetScopes(scopes *probes.Scopes) { c.scopes.Store(scopes) }

// Unhook gives client-go back the metrics that were there before. It is for tests; no client may be made at the same time.
func (c *TransportCache) Unhook() {
	metrics.TransportCreateCalls = c.calls
	metrics.TransportCacheEntries = c.entries
}

// Increment implements client-go's metric. It is called by whoever makes a client, on its own goroutine.
func (c *TransportCache) Increment(result string) {
	c.calls.Increment(result)
	if result == "hit" {
		c.hits.Add(1)
		return
	}
	site := probes.CallSite(1)
	c.mu.Lock()
	s := c.sites[site.ID()]
	known := s != nil && s.scope != ""
	c.mu.Unlock()
	scope := ""
	if scopes := c.scopes.Load(); scopes != nil && !known {
		scope = scopes.ScopeNow(site.Frames())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s = c.sites[site.ID()]; s == nil {
		if len(c.sites) >= maxSites {
			return
		}
		s = &madeTransports{site: site}
		c.sites[site.ID()] = s
	}
	s.scope = cmp.Or(s.scope, scope)
	s.n++
}

// cacheSize observes the size of client-go's cache.
type cacheSize struct{ c *TransportCache }

// Observe implements client-go's metric.
func (s cacheSize) Observe(n int) {
	s.c.entries.Observe(n)
	s.c.size.Store(int64(n))
}

// Name implements [probes.Probe].
func (c *TransportCache) Name() string { return TransportCacheName }

// transportsAgain is the least number of transports of one site that is worth a line while they become more.
const transportsAgain = 10

// Read implements [probes.Probe]: the transports that were made, and each place below a span that makes ever more of them. Their
// connections end by themselves, 90 seconds after the last use, so that is no leak.
func (c *TransportCache) Read(_ context.Context, dst []probes.Reading) []probes.Reading {
	c.mu.Lock()
	sites := make([]madeTransports, 0, len(c.sites))
	total := 0
	for _, s := range c.sites {
		sites = append(sites, *s)
		total += s.n
	}
	c.mu.Unlock()
	dst = append(dst,
		probes.Reading{Resource: "client transports made", Count: float64(total), Covariate: -1, Total: true},
		probes.Reading{Resource: "client transports cached", Count: float64(c.size.Load()), Covariate: -1})
	slices.SortFunc(sites, func(a, b madeTransports) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.site.ID(), b.site.ID()))
	})
	for i, s := range sites {
		again := c.climb.Observe(strconv.FormatUint(s.site.ID(), 36), s.n) >= probes.Repeating
		if !again || s.n < transportsAgain || i >= maxReadings || !s.site.InSpan() {
			continue
		}
		dst = append(dst, probes.Reading{
			Resource: "client transports of one place", Scope: s.scope, Count: float64(s.n), Covariate: -1, Bounded: true, Total: true,
			Culprit: s.site.Culprit(c.main), Stack: s.site.Frames(), Trap: "S2-13b",
			Reason: fmt.Sprintf("%d clients were made here that share no transport (%d others did): each opens connections of its own, which stay until they were idle for 90 seconds", s.n, c.hits.Load()),
			Advice: "make one client for each cluster at start and share it; set no Proxy or Dial function and no new TLS settings on a copy of its config",
		})
	}
	c.climb.EndRound()
	return dst
}
