package traps

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// sharedHTTP keeps connections open between reconciles, as every HTTP client does. Each connection has two goroutines
// that carry the label of the reconcile that happened to dial it.
func sharedHTTP() Trap {
	return Trap{
		Name: "shared-http", Row: "S2-13", Expect: ExpectSilent,
		Title: "no leak: reconciles share one HTTP client, whose connections stay open between them",
		Leak:  startSharedHTTP,
	}
}

func startSharedHTTP(ctx context.Context, _ Env) (Work, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Work{}, fmt.Errorf("traps: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	})}
	go func() { _ = server.Serve(l) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	context.AfterFunc(ctx, func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	shared := &http.Client{Transport: transport, Timeout: time.Second}
	url := "http://" + l.Addr().String()
	return Work{Reconcile: func(ctx context.Context, object Object) error {
		if object.Deleted {
			return nil
		}
		return fetch(ctx, shared, url)
	}}, nil
}

// fetch makes a few requests at once, so that a reconcile may need more connections than the ones before it left.
func fetch(ctx context.Context, c *http.Client, url string) error {
	var group sync.WaitGroup
	errs := make(chan error, 3)
	for range cap(errs) {
		group.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
			if err != nil {
				errs <- err
				return
			}
			response, err := c.Do(request)
			drain(response, err)
			errs <- err
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return fmt.Errorf("traps: %w", err)
		}
	}
	return nil
}
