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
