package clientgo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
)

// TestBlockedHandlerHidesNoLeak has a handler that never returns, whose span stays open, beside handlers that a reconcile
// adds again and again.
func TestBlockedHandlerHidesNoLeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.informers = clientgo.NewInformers(clientgo.InformersOptions{
			Ledger:       probes.LedgerOptions{Scopes: w.scopes},
			HandlerScope: func(string) *probes.Scope { return w.scopes.Scope("handlers") },
		})
		w.newCache()
		i, stop := w.start(newPods("a"))
		release := make(chan struct{})
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-release }}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 12 {
			w.scopes.Scope("app").Do(t.Context(), func(context.Context) {
				if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Minute)
		leaked := 0.0
		for _, r := range w.informers.Read(t.Context(), nil) {
			if r.Leaked && r.Resource == "event handlers left open" {
				leaked += r.Count
			}
		}
		if leaked != 12 {
			t.Errorf("got %v handlers left open, want 12", leaked)
		}
		close(release)
		stop()
	})
}
