package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/examples/traps"
)

// perProcess is how many traps run in one operator.
const perProcess = 12

// Every trap, and every twin, on a real kube-apiserver with the newest controller-runtime, on both releases of Go: what
// leakguard says of it is what the trap declares, of the declared controller, line and rule, and nothing else fires.
func TestTraps(t *testing.T) {
	_, file := cluster(t)
	runs := slices.Concat(
		batches(false, "--until-found --duration=180s", func(t *traps.Trap) bool { return t.Expect == traps.ExpectAlarm }),
		batches(false, "--duration=95s", func(t *traps.Trap) bool { return t.Expect == traps.ExpectListed || t.Expect == traps.ExpectNotice }),
		batches(false, "--duration=45s", func(t *traps.Trap) bool { return t.Expect == traps.ExpectSilent }),
		batches(true, "--twin --duration=45s", func(t *traps.Trap) bool { return t.Twin != nil }),
	)
	for _, toolchain := range []string{"go1.26.8", "go1.27.3"} {
		t.Run(toolchain, func(t *testing.T) {
			binary, err := buildOperator(t.Context(), toolchain)
			if err != nil {
				t.Fatal(err)
			}
			var own []string // each in its own namespace of the one cluster
			for i, args := range runs {
				own = append(own, fmt.Sprintf("%s --namespace=%s-%d", args, strings.ReplaceAll(toolchain, ".", "-"), i))
			}
			fleet{binary: binary, api: "kubeconfig", environment: []string{"KUBECONFIG=" + file}, atOnce: 6}.expectAll(t, own...)
		})
	}
}

// batches gives the arguments that run the traps of which leakguard says what it should, several in one operator.
func batches(twins bool, flags string, which func(*traps.Trap) bool) []string {
	var out []string
	for _, names := range traps.Runs(twins, perProcess, which) {
		out = append(out, "--scale=0.05 --max-pause=-1s --expect=each "+flags+" --leak="+names)
	}
	return out
}
