package e2e_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// proxy stands between operators and their API server, and can cut all connections: every watch then has to start again.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// newProxy starts a proxy, which ends with the test.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target, conns: map[net.Conn]struct{}{}}
	var group sync.WaitGroup
	group.Go(func() { p.serve(&group) })
	t.Cleanup(func() {
		_ = listener.Close()
		p.cut()
		group.Wait()
	})
	return p
}

// host is what a kubeconfig calls it.
func (p *proxy) host() string { return "https://" + p.listener.Addr().String() }

func (p *proxy) serve(group *sync.WaitGroup) {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
		if err != nil {
			_ = in.Close() // the API server is away
			continue
		}
		p.mu.Lock()
		p.conns[in], p.conns[out] = struct{}{}, struct{}{}
		p.mu.Unlock()
		group.Go(func() { p.pipe(in, out) })
		group.Go(func() { p.pipe(out, in) })
	}
}

// pipe copies what one side says to the other until either ends.
func (p *proxy) pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, to)
	delete(p.conns, from)
}

// cut ends all connections and gives how many there were.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	return len(p.conns) / 2
}
