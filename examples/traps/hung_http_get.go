package traps

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// hungHTTPGet asks a server that takes the connection and never answers.
func hungHTTPGet() Trap {
	return Trap{
		Name: "hung-http-get", Row: "S1-05", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Title:   "a goroutine started in Reconcile calls http.Get, without a timeout, on a server that hangs",
		Culprit: siteOf(getWithoutTimeout, ""), Also: connParts(), Parts: connHalves(),
		Leak: hung(getWithoutTimeout),
		Twin: hung(getWithTimeout),
	}
}

// hung sets up a server that never answers: connections are made by the kernel and wait for an accept that does not come.
func hung(get func(ctx context.Context, url string)) Start {
	return func(ctx context.Context, _ Env) (Work, error) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return Work{}, fmt.Errorf("traps: %w", err)
		}
		context.AfterFunc(ctx, func() { _ = l.Close() })
		url := "http://" + l.Addr().String()
		return Work{Reconcile: func(ctx context.Context, object Object) error {
			if !object.Deleted {
				go get(ctx, url)
			}
			return nil
		}}, nil
	}
}

func getWithoutTimeout(_ context.Context, url string) {
	response, err := http.Get(url) //nolint:noctx // this is the trap
	drain(response, err)
}

func getWithTimeout(ctx context.Context, url string) {
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	getWithin(ctx, url)
}

// getWithin gives up when ctx ends.
func getWithin(ctx context.Context, url string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	response, err := http.DefaultClient.Do(request)
	drain(response, err)
}

func drain(response *http.Response, err error) {
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}
