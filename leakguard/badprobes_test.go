package leakguard_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

// badProbe does at each reading what it is told.
type badProbe struct {
	name string
	read func(ctx context.Context)
}

func (p *badProbe) Name() string { return p.name }

func (p *badProbe) Read(ctx context.Context, dst []probes.Reading) []probes.Reading {
	p.read(ctx)
	return dst
}

// TestBadProbes has a probe that panics, one that blocks and one that is slow before one that knows of leaks: those are
// found, the health check passes, and the report, the notices, the log and the metrics say which probe is bad.
func TestBadProbes(t *testing.T) {
	leavesNothing(t)
	release := make(chan struct{})
	var asked atomic.Int64
	var log lines
	registry := prometheus.NewRegistry()
	guard := leakguard.New(leakguard.Options{
		Scale: scale, Registerer: registry, Logger: log.logger(), Probes: []probes.Probe{
			&badProbe{"panics", func(context.Context) { panic("out of order") }},
			&badProbe{"blocks", func(context.Context) { asked.Add(1); <-release }},
			&badProbe{"slow", func(ctx context.Context) { <-ctx.Done() }},
			lost{},
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- guard.Start(ctx) }()
	eventually(t, "both leaks fire", func() bool { return guard.Report().Firing() == 2 })
	eventually(t, "the probe that blocks is late again", func() bool { return stats(guard)["blocks"].Late >= 2 })
	if err := guard.Check(nil); err != nil {
		t.Errorf("Check: %v", err)
	}
	got := stats(guard)
	if p := got["panics"]; p.Panics != 1 || !p.Off || p.Reason != "out of order" {
		t.Errorf("the probe that panics: %+v", p)
	}
	if p := got["blocks"]; p.Panics != 0 || p.Off {
		t.Errorf("the probe that blocks: %+v", p)
	}
	if p := got["lost"]; p.Panics+p.Late > 0 || p.Off {
		t.Errorf("the good probe: %+v", p)
	}
	r := guard.Report()
	if r.Sampling.Panics > 0 {
		t.Errorf("got %d panics of the guard's own", r.Sampling.Panics)
	}
	for _, part := range []string{"probe panics has panicked and is switched off: out of order", "probe blocks has taken too long"} {
		if n := strings.Count(strings.Join(r.Notices, "\n"), part); n != 1 {
			t.Errorf("got notices %q, want one with %q", r.Notices, part)
		}
		if n := log.count(part); n != 1 {
			t.Errorf("got %d log lines with %q, want one", n, part)
		}
	}
	panics, lates := gauges(t, registry, "leakguard_probe_panics_total", "probe"), gauges(t, registry, "leakguard_probe_late_total", "probe")
	if panics["panics"] != 1 || panics["lost"] != 0 || lates["blocks"] == 0 || lates["lost"] != 0 {
		t.Errorf("got metrics of panics %v and of lateness %v", panics, lates)
	}
	close(release)
	was := asked.Load()
	eventually(t, "the probe that blocked is asked again", func() bool { return asked.Load() > was+1 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// stats is how the guard's probes have behaved, by name.
func stats(g *leakguard.Guard) map[string]probes.SetStats {
	byName := map[string]probes.SetStats{}
	for _, p := range g.Report().Probes {
		byName[p.Probe] = p
	}
	return byName
}
