package probes

import (
	"context"
	"net/http"
)

// Handler runs each request of an HTTP handler, such as a webhook, as a span of the scope, without an object: a goroutine
// that it starts and that outlives the request is an orphan. The request's context carries the labels. The
// [http.ResponseWriter] is passed on as it is.
func Handler(scope *Scope, h http.Handler) http.Handler { return &handler{scope: scope, inner: h} }

type handler struct {
	scope *Scope
	inner http.Handler
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, span := h.scope.Begin(r.Context(), 0)
	defer span.End()
	h.inner.ServeHTTP(w, r.WithContext(ctx))
}

// Func gives a function that runs f as a span of the scope, for callbacks that have no context, such as event handlers.
// When f returns, the goroutine has no labels.
func Func[T any](scope *Scope, f func(T)) func(T) {
	return func(v T) {
		scope.Do(context.Background(), func(context.Context) { f(v) })
	}
}
