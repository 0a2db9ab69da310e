package probes

import (
	"context"
	"net/http"
	"runtime/pprof"
	"strings"
)

// Detach takes the labels off the calling goroutine, for a goroutine that serves the whole process although it happens
// to be started inside a span, such as a lazily started informer. What it starts has no labels either.
func Detach() { pprof.SetGoroutineLabels(unlabelled) }

// unlabelled has no labels. It is never changed.
var unlabelled = context.Background()

// Shield wraps a round tripper so that connections that a request happens to open are not taken for the work of the
// span that sent it: the labels are off during the round trip and come back from the request's context after it.
//
// A watch keeps its labels: its stream belongs to the one who asked for it. A request whose context is of no span goes
// through untouched. Labels that the user set on the goroutine without passing their context on are lost after the call.
// A nil base is [http.DefaultTransport].
func Shield(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &shield{base: base}
}

type shield struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (s *shield) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if _, inSpan := pprof.Label(ctx, LabelReconcile); !inSpan || isWatch(r) {
		return s.base.RoundTrip(r)
	}
	Detach() //nolint:contextcheck // no labels at all is the point
	defer pprof.SetGoroutineLabels(ctx)
	return s.base.RoundTrip(r)
}

// WrappedRoundTripper gives the base, as client-go's helpers expect of a wrapper.
func (s *shield) WrappedRoundTripper() http.RoundTripper { return s.base }

// isWatch tells a Kubernetes watch by its query.
func isWatch(r *http.Request) bool { return watchQuery(r.URL.RawQuery) }

// watchQuery does what [url.ParseQuery] would, without its allocations: every request pays for it.
func watchQuery(raw string) bool {
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if pair == "watch=true" || pair == "watch=1" {
			return true
		}
	}
	return false
}
