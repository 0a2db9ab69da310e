package probes_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/probes"
)

// makeTransport is what a reconcile should not do.
func makeTransport(transport *probes.Transport, idle time.Duration) *http.Transport {
	t := &http.Transport{IdleConnTimeout: idle}
	transport.Wrap(t)
	return t
}

// TestTransportsMadeAgainAndAgain makes transports inside of spans, and outside.
func TestTransportsMadeAgainAndAgain(t *testing.T) {
	const function = "github.com/leakguard/leakguard/probes_test.makeTransport"
	for _, tt := range []struct {
		name    string
		idle    time.Duration
		inSpan  bool
		claims  []string
		rounds  int
		found   bool
		bounded bool
		scope   string
	}{
		{"whose connections end", 90 * time.Second, true, []string{"app"}, 5, true, true, "app"},
		{"of one of two controllers", 90 * time.Second, true, []string{"app", "other"}, 5, true, true, "app"},
		{"of a controller that nobody knows", 90 * time.Second, true, nil, 5, true, true, ""},
		{"whose connections stay", 0, true, []string{"app"}, 5, true, false, "app"},
		{"twice", 90 * time.Second, true, []string{"app"}, 2, false, false, ""},
		{"outside", 90 * time.Second, false, nil, 5, false, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			scopes := probes.NewScopes()
			for _, scope := range tt.claims {
				scopes.Scope(scope)
				scopes.Claim(function, scope)
			}
			transport := probes.NewTransport(probes.LedgerOptions{Scopes: scopes})
			var kept []*http.Transport
			var found *probes.Reading
			for range tt.rounds {
				if tt.inSpan {
					scopes.Scope("app").Do(t.Context(), func(context.Context) { kept = append(kept, makeTransport(transport, tt.idle)) })
				} else {
					kept = append(kept, makeTransport(transport, tt.idle))
				}
				for _, r := range transport.Read(t.Context(), nil) {
					if strings.HasPrefix(r.Resource, "HTTP transports made") {
						found = &r
					}
				}
			}
			switch {
			case (found != nil) != tt.found:
				t.Fatalf("got %+v, want a reading: %t", found, tt.found)
			case found == nil:
				return
			}
			if int(found.Count) != len(kept) || found.Bounded != tt.bounded || found.Leaked || found.Scope != tt.scope {
				t.Errorf("got %v, bounded %t, scope %q; want %d, %t, %q", found.Count, found.Bounded, found.Scope, len(kept), tt.bounded, tt.scope)
			}
			if found.Stack[0].Function != function {
				t.Errorf("got %s first, want the one who makes them", found.Stack[0].Function)
			}
		})
	}
}
