package leakguard

import (
	"sync/atomic"

	"github.com/leakguard/leakguard/probes"
)

// process is what belongs to the process and cannot belong to a Guard: goroutine labels are read from all goroutines of
// the process, so the reconciles in flight are counted for all managers together, and two guards would each report
// every leak.
var process = struct {
	scopes *probes.Scopes
	guard  atomic.Pointer[Guard] // the one that is running
}{scopes: probes.NewScopes()}

// Scope gives the scope with this name for work that no manager wraps: HTTP handlers with [probes.Handler], callbacks with
// [probes.Func], and whatever else must leave no goroutine behind with [probes.Scope.Do]. In reports, metrics and findings it
// stands among the controllers. There is no bound on names: they are for kinds of work, not for objects.
func Scope(name string) *probes.Scope { return process.scopes.Scope(name) }
