package traps

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// hungReconcile asks the server that never answers from the reconcile itself, which then does not return.
func hungReconcile() Trap {
	return Trap{
		Name: "hung-reconcile", Row: "S1-05", Expect: ExpectAlarm, Grows: Counted, Controller: LeakyController, Rules: []string{"in-flight"},
		Within:  450, // a reconcile may take ten minutes
		Title:   "Reconcile itself calls http.Get, without a timeout, on a server that hangs: it never returns, and its worker does nothing else",
		Culprit: siteOf(askInline, ""),
		Leak:    hungInline(askInline),
		Twin:    hungInline(askInlineFor),
	}
}

// hungInline has one reconcile ask. The rest of the work goes on.
func hungInline(ask func(ctx context.Context, env Env, url string)) Start {
	return func(life context.Context, env Env) (Work, error) {
		l, err := (&net.ListenConfig{}).Listen(life, "tcp", "127.0.0.1:0")
		if err != nil {
			return Work{}, fmt.Errorf("traps: %w", err)
		}
		context.AfterFunc(life, func() { _ = l.Close() }) // which ends what waits for an answer
		var asked atomic.Uint64
		return onObjects(func(ctx context.Context, _ Object) error {
			if asked.Add(1) == hungAt {
				ask(ctx, env, "http://"+l.Addr().String())
			}
			return nil
		}), nil
	}
}

// hungAt is which reconcile asks.
const hungAt = 20

func askInline(_ context.Context, _ Env, url string) {
	response, err := http.Get(url) //nolint:noctx // this is the trap
	drain(response, err)
}

// askInlineFor gives up after a time that is long for a reconcile and ends.
func askInlineFor(ctx context.Context, env Env, url string) {
	ctx, cancel := context.WithTimeout(ctx, env.scaled(time.Minute))
	defer cancel()
	getWithin(ctx, url)
}
