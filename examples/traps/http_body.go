package traps

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// httpBody forgets to close a body that has more to come, so its connection cannot be used again.
func httpBody() Trap {
	return Trap{
		Name: "http-body", Row: "S1-05b", Expect: ExpectAlarm, Grows: Counted, NeedsAPI: true, Controller: LeakyController,
		Title:   "Reconcile looks at the status of a response and does not close its body: a connection and two goroutines each",
		Culprit: siteOf(leakHTTPBody, ""),
		Leak:    withAPI(leakHTTPBody),
		Twin:    withAPI(cleanHTTPBody),
	}
}

// withAPI uses the HTTP client of the operator's own configuration, as streams of logs do.
func withAPI(get func(ctx context.Context, c *http.Client, url string) error) Start {
	return func(_ context.Context, env Env) (Work, error) {
		c, err := rest.HTTPClientFor(env.Config)
		if err != nil {
			return Work{}, fmt.Errorf("traps: %w", err)
		}
		return onObjects(func(ctx context.Context, object Object) error {
			return get(ctx, c, env.Config.Host+"/apis/apps.leakguard.example/v1alpha1/namespaces/"+object.Namespace+"/apps")
		}), nil
	}
}

// connParts are the descriptors of a connection.
func connParts() []string { return []string{"open files", "open files: socket"} }

// connHalves are the goroutines of a connection of HTTP/1.1.
func connHalves() []string {
	return []string{"net/http.(*persistConn).readLoop", "net/http.(*persistConn).writeLoop"}
}

// ownClientBody is the same with an HTTP client of the operator's own, which leakguard does not see.
func ownClientBody() Trap {
	return Trap{
		Name: "own-client-body", Row: "S1-05b", Expect: ExpectAlarm, Grows: Counted, Controller: LeakyController,
		Rules:   []string{"growth"},
		Title:   "the same with an http.Client that was not made of the manager's configuration",
		Culprit: Site{Function: "net/http.(*persistConn).writeLoop"}, Also: connParts(), Parts: connHalves(),
		Leak: withServer(leakHTTPBody),
		Twin: withServer(cleanHTTPBody),
	}
}

// withServer sets up a server whose answers are larger than what is read ahead.
func withServer(get func(ctx context.Context, c *http.Client, url string) error) Start {
	return func(ctx context.Context, _ Env) (Work, error) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return Work{}, fmt.Errorf("traps: %w", err)
		}
		server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 64<<10))
		})}
		go func() { _ = server.Serve(l) }()
		transport := &http.Transport{}
		context.AfterFunc(ctx, func() {
			transport.CloseIdleConnections()
			_ = server.Close()
		})
		c, url := &http.Client{Transport: transport}, "http://"+l.Addr().String()
		return Work{Reconcile: func(ctx context.Context, object Object) error {
			if object.Deleted {
				return nil
			}
			return get(ctx, c, url)
		}}, nil
	}
}

func leakHTTPBody(ctx context.Context, c *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.Do(request) //nolint:bodyclose // this is the trap
	if err != nil {
		return err
	}
	return statusOK(response)
}

func cleanHTTPBody(ctx context.Context, c *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return statusOK(response)
}

func statusOK(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("traps: %s", response.Status)
	}
	return nil
}

// ownTransport makes an HTTP transport per rollout, whose idle connection stays for ever.
func ownTransport() Trap {
	return Trap{
		Name: "own-transport", Row: "S2-13d", Expect: ExpectAlarm, Grows: Counted, Controller: LeakyController,
		Rules:   []string{"growth"},
		Title:   "Reconcile makes an http.Transport of its own and leaves its idle connection behind: two goroutines and a descriptor each",
		Culprit: Site{Function: "net/http.(*persistConn).writeLoop"}, Also: connParts(), Parts: connHalves(),
		Leak: withServer(leakOwnTransport),
		Twin: withServer(cleanOwnTransport),
	}
}

func leakOwnTransport(ctx context.Context, _ *http.Client, url string) error {
	transport := &http.Transport{}
	return getAll(ctx, transport, url)
}

func cleanOwnTransport(ctx context.Context, _ *http.Client, url string) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	return getAll(ctx, transport, url)
}

func getAll(ctx context.Context, transport http.RoundTripper, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
