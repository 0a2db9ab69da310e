package main

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// logState counts the errors that the operator logs, whether they are shown or not.
type logState struct {
	errors atomic.Uint64
	last   atomic.Value // string
}

// setLog sends the log of controller-runtime and client-go to w, or nowhere.
func setLog(w io.Writer, verbose bool) *logState {
	state := &logState{}
	if !verbose {
		w = io.Discard
	}
	logger := logr.FromSlogHandler(&countingHandler{Handler: slog.NewTextHandler(w, nil), state: state})
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return state
}

// countingHandler passes records on and counts the errors among them.
type countingHandler struct {
	slog.Handler
	state *logState
}

func (h *countingHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		h.state.errors.Add(1)
		text := r.Message
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "err" {
				text += ": " + a.Value.String()
			}
			return true
		})
		h.state.last.Store(text)
	}
	return h.Handler.Handle(ctx, r)
}

func (h *countingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &countingHandler{Handler: h.Handler.WithAttrs(attrs), state: h.state}
}

func (h *countingHandler) WithGroup(name string) slog.Handler {
	return &countingHandler{Handler: h.Handler.WithGroup(name), state: h.state}
}
