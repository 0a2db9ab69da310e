package reconcilertest_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/leakguard/leaktest"
	"github.com/leakguard/leakguard/leakguard/leaktest/reconcilertest"
)

func ExampleVerify() {
	stop := make(chan struct{})
	defer close(stop)
	t := &fake{} // the *testing.T of a test
	client := clientfake.NewClientBuilder().WithScheme(scheme()).Build()
	r := &reconciler{client, func(ctx context.Context, _ reconcile.Request) error {
		if ctx.Err() == nil {
			go func() { <-stop }() // waits for a reply that never comes
		}
		return nil
	}}
	reconcilertest.Verify(t, r, []reconcile.Request{request("web")}, reconcilertest.Rounds(5),
		reconcilertest.Checks(leaktest.Settle(20*time.Millisecond), leaktest.HeapTime(time.Millisecond)))
	first, _, _ := strings.Cut(t.failures[0], " that had")
	fmt.Println(first)
	// Output:
	// leaktest: TestInner/Check left 1 goroutines behind
}
