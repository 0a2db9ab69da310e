package leakguard

import (
	"strings"

	"github.com/leakguard/leakguard/probes"
)

// handlersOf is what the names of the scopes of event handlers start with.
const handlersOf = "handlers of "

// handlerScope gives the scope that the event handlers of a kind's informers run in: "handlers of v1.Pod informer".
func handlerScope(kind string) *probes.Scope {
	return process.scopes.Scope(handlersOf + kind[strings.LastIndexByte(kind, '/')+1:] + " informer")
}

// isHandlers reports whether a scope is one of event handlers. Those are no controllers, and a probe tells which of them do
// not return.
func isHandlers(scope string) bool { return strings.HasPrefix(scope, handlersOf) }
