package leakguard

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// PagePath is where Setup and NewManager serve the debug page on the manager's metrics server.
const PagePath = "/debug/leakguard"

// Handler gives the debug page: the report as JSON, or as text for curl, wget and ?format=text. It is read-only and never
// samples.
//
// Callers that are not on the loopback interface get counts only, without stacks and names, unless Options.DebugOpen is
// set. Setup and NewManager lift that where the metrics server authenticates its callers.
func (g *Guard) Handler() http.Handler { return &page{guard: g, open: g.options.DebugOpen} }

type page struct {
	guard *Guard
	open  bool // the callers are known, or everybody may see all
}

// ServeHTTP implements [http.Handler].
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "leakguard: the page is read-only", http.StatusMethodNotAllowed)
		return
	}
	format, err := formatOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	report := p.guard.Report()
	if !p.open && !isLoopback(r) {
		report = report.redacted()
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Type", map[string]string{"json": "application/json", "text": "text/plain; charset=utf-8"}[format])
	if r.Method == http.MethodHead {
		return
	}
	if format == "text" {
		report.writeText(w)
		return
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(report) // the caller has gone: nothing to be done
}

// formatOf gives "json" or "text": what ?format= asks for, else what suits the caller.
func formatOf(r *http.Request) (string, error) {
	switch f := r.URL.Query().Get("format"); f {
	case "json", "text":
		return f, nil
	case "":
	default:
		return "", fmt.Errorf("leakguard: format %q is not json or text", f)
	}
	accept, agent := r.Header.Get("Accept"), r.Header.Get("User-Agent")
	switch {
	case strings.Contains(accept, "application/json"):
		return "json", nil
	case strings.HasPrefix(accept, "text/plain"), strings.HasPrefix(agent, "curl/"), strings.HasPrefix(agent, "Wget/"):
		return "text", nil
	}
	return "json", nil
}

// isLoopback reports whether the request came over the loopback interface and was not passed on by a proxy.
func isLoopback(r *http.Request) bool {
	if r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" {
		return false
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// redacted is the report without stacks and names: what strangers may see.
func (r *Report) redacted() *Report {
	c := *r
	c.Controllers, c.Notices, c.Probes, c.Readings = []ControllerReport{}, nil, nil, nil
	c.Findings = make([]Finding, 0, len(r.Findings))
	for i := range r.Findings {
		f := &r.Findings[i]
		c.Findings = append(c.Findings, Finding{
			Schema: f.Schema, Fingerprint: f.Fingerprint, Rule: f.Rule, Category: f.Category, Tier: f.Tier, State: f.State,
			Verdict: f.Verdict, Severity: f.Severity, Count: f.Count, PerHour: f.PerHour, FirstSeen: f.FirstSeen, LastSeen: f.LastSeen,
			Reason: "names and stacks are for callers on the loopback interface or an authenticated metrics server",
		})
	}
	return &c
}

// writeText writes the report for a person at a terminal.
func (r *Report) writeText(w io.Writer) {
	var b strings.Builder
	fmt.Fprintf(&b, "leakguard: %d firing, %d pending, %d listed; %d goroutines, %d of them of ended reconciles; sample of %s, every %gs\n",
		r.count(StateFiring), r.count(StatePending), r.count(StateListed), r.Goroutines, r.Orphans, r.At.UTC().Format(time.RFC3339), r.Sampling.IntervalSeconds)
	for i := range r.Findings {
		r.Findings[i].writeText(&b)
	}
	for _, n := range r.Notices {
		fmt.Fprintf(&b, "\nnotice: %s\n", n)
	}
	if len(r.Controllers) > 0 {
		b.WriteString("\ncontrollers:\n")
	}
	for _, c := range r.Controllers {
		fmt.Fprintf(&b, "  %-24s reconciles %d, in flight %d, orphaned goroutines %d", c.Name, c.Reconciles, c.InFlight, c.Orphans)
		if !c.Instrumented {
			b.WriteString(" (not instrumented)")
		}
		b.WriteByte('\n')
	}
	r.writeReadings(&b)
	_, _ = io.WriteString(w, b.String()) // the caller has gone: nothing to be done
}

func (f *Finding) writeText(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n  since %s, %s, severity %s\n  %s\n", f, f.FirstSeen.UTC().Format(time.RFC3339), f.Category, f.Severity, f.Reason)
	if f.Advice != "" {
		fmt.Fprintf(b, "  advice: %s\n", f.Advice)
	}
	for _, stack := range f.Stacks {
		b.WriteString("  stack:\n")
		for _, call := range stack {
			fmt.Fprintf(b, "    %s\n        %s:%d\n", call.Function, call.File, call.Line)
		}
	}
}
