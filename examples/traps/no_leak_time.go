package traps

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// What is said to leak timers and does not, since Go 1.23.

// notALeak makes a trap that is none.
func notALeak(name, row, title string, start Start) Trap {
	return Trap{Name: name, Row: row, Expect: ExpectSilent, Title: "no leak: " + title, Leak: start}
}

func droppedTick() Trap {
	return notALeak("dropped-tick", "S1-01c", "time.Tick is called and its channel dropped", inReconcile(func(context.Context, Object) error {
		for range states {
			_ = time.Tick(time.Hour)
		}
		return nil
	}))
}

func timeAfterLoop() Trap {
	return notALeak("time-after-loop", "S1-08", "time.After in a loop that always takes the other case", inReconcile(func(context.Context, Object) error {
		ready := make(chan struct{}, states)
		for range states {
			ready <- struct{}{}
		}
		for range states {
			select {
			case <-ready:
			case <-time.After(time.Hour):
			}
		}
		return nil
	}))
}

func droppedTicker() Trap {
	return notALeak("dropped-ticker", "S1-14a", "a ticker is made and dropped without Stop", inReconcile(func(context.Context, Object) error {
		for range states {
			time.NewTicker(time.Hour)
		}
		return nil
	}))
}

func cancelledAtOnce() Trap {
	return notALeak("cancelled-at-once", "S1-06", "a goroutine gets a context that is cancelled when its Reconcile returns: it does nothing, but it ends", inReconcile(func(ctx context.Context, _ Object) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}()
		return nil
	}))
}

func nestedTimeouts() Trap {
	return notALeak("nested-timeouts", "S2-11a", "contexts with timeouts in each other, never cancelled: they go when their second is over", withLife(func(life context.Context) {
		for range states {
			outer, cancelOuter := context.WithTimeout(life, time.Second)
			_, cancelInner := context.WithTimeout(outer, time.Second)
			_, _ = cancelOuter, cancelInner // a linter would rightly say more
		}
	}))
}

// lateWriter answers after its handler has returned, which fails, and ends.
func lateWriter() Trap {
	return notALeak("late-writer", "S1-09", "an HTTP handler leaves a goroutine behind that writes an answer too late, and ends", func(ctx context.Context, _ Env) (Work, error) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return Work{}, fmt.Errorf("traps: %w", err)
		}
		server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusOK)
			go func() {
				time.Sleep(100 * time.Millisecond)
				_, _ = io.WriteString(w, "too late")
			}()
		})}
		go func() { _ = server.Serve(l) }()
		transport := &http.Transport{MaxIdleConnsPerHost: 8}
		context.AfterFunc(ctx, func() {
			transport.CloseIdleConnections()
			_ = server.Close()
		})
		c, url := &http.Client{Transport: transport, Timeout: time.Second}, "http://"+l.Addr().String()
		return onObjects(func(ctx context.Context, _ Object) error { return fetch(ctx, c, url) }), nil
	})
}
