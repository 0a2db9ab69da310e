package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
)

// Options configures Start.
type Options struct {
	// CRD is the custom resource that the API must have. Required.
	CRD *apiextensionsv1.CustomResourceDefinition
	// RestartAfter is how long a child that died stays away before it is started again. 0 means a second.
	RestartAfter time.Duration
	// Log gets a line when a child dies and when it is back. Nil means that nobody is told.
	Log func(format string, args ...any)
	// Stderr gets what a child prints to its standard error. Nil means that it is dropped.
	Stderr io.Writer
}

// startTimeout is how long a child may take until its API answers; a kube-apiserver takes a few seconds.
const startTimeout = 90 * time.Second

// Server is a running API server, or a connection to one.
type Server struct {
	kind Kind
	opts Options
	cfg  *rest.Config
	dir  string

	stop    chan struct{}
	stopped chan struct{}
	gone    chan struct{}

	mu    sync.Mutex
	child *child
	away  time.Duration // how long the next death lasts
}

// child is a process that is an API server.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	// ended is closed when the process has been waited for.
	ended chan struct{}
}

// Start gives an API server of a kind, with the custom resource in it. It returns when the API answers. A child in memory that
// dies, for whatever reason, is started again until Close: with the same objects, address and certificate.
func Start(ctx context.Context, kind Kind, opts Options) (*Server, error) {
	if opts.RestartAfter == 0 {
		opts.RestartAfter = time.Second
	}
	if opts.Log == nil {
		opts.Log = func(string, ...any) {}
	}
	s := &Server{kind: kind.Resolve(os.Getenv), opts: opts, stop: make(chan struct{}), stopped: make(chan struct{}), gone: make(chan struct{})}
	if s.kind == Kubeconfig {
		close(s.stopped)
		cfg, err := connect(ctx, opts.CRD)
		s.cfg = cfg
		return s, err
	}
	if s.kind == Envtest && os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, errors.New("apiserver: envtest needs $KUBEBUILDER_ASSETS, the folder of kube-apiserver and etcd")
	}
	dir, err := os.MkdirTemp("", "leakguard-example-")
	if err != nil {
		return nil, fmt.Errorf("apiserver: %w", err)
	}
	s.dir = dir
	if s.child, s.cfg, err = s.spawn(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go s.supervise(ctx)
	return s, nil
}

// Kind gives the kind of the server, never Auto.
func (s *Server) Kind() Kind { return s.kind }

// Gone is closed when the server died and cannot be started again.
func (s *Server) Gone() <-chan struct{} { return s.gone }

// Config gives a copy of the configuration for clients.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.cfg) }

// PID gives the process id of the child, or 0 when there is none at the moment.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil {
		return 0
	}
	return s.child.cmd.Process.Pid
}

// Outage takes the API away for some time. A child in memory is killed, so that it has no chance to end in order; a
// kube-apiserver is stopped and started again.
func (s *Server) Outage(length time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.kind == Kubeconfig:
		return errors.New("apiserver: there can be no outage of a cluster that is not ours")
	case s.child == nil:
		return errors.New("apiserver: the API server is away already")
	case s.kind == Envtest:
		_, err := fmt.Fprintf(s.child.stdin, "%s%s\n", outageCommand, length)
		return err
	}
	s.away = length
	return s.child.cmd.Process.Kill()
}

// Close ends the server and waits until its process has gone and its folder is removed. It may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.mu.Unlock()
	<-s.stopped
	if s.dir == "" {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("apiserver: %w", err)
	}
	return nil
}

// spawn starts a child and waits until its API answers.
func (s *Server) spawn(ctx context.Context) (*child, *rest.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("apiserver: %w", err)
	}
	// Not CommandContext: the child outlives the wish to stop, since the operator needs it to shut down in order.
	cmd := exec.Command(self, childArg, string(s.kind), s.dir) //nolint:noctx // see above
	cmd.Stderr = s.opts.Stderr
	stdin, inErr := cmd.StdinPipe()
	stdout, outErr := cmd.StdoutPipe()
	if err = errors.Join(inErr, outErr); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("apiserver: start: %w", err)
	}
	c := &child{cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	type answer struct {
		cfg *rest.Config
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		cfg, listenErr := listen(stdout, s.kind)
		answered <- answer{cfg, listenErr}
		_ = cmd.Wait() // also closes stdout; how it ended matters to nobody
		close(c.ended)
	}()
	a := answer{err: fmt.Errorf("it did not answer within %v", startTimeout)}
	select {
	case a = <-answered:
	case <-time.After(startTimeout):
	case <-ctx.Done():
		a.err = ctx.Err()
	case <-s.stop:
		a.err = context.Canceled
	}
	if a.err != nil {
		c.end()
		return nil, nil, fmt.Errorf("apiserver: the API server (%s) could not be started: %w", s.kind, a.err)
	}
	return c, a.cfg, nil
}

// end asks a child to end by closing its standard input, and kills it when it does not.
func (c *child) end() {
	_ = c.stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(30 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// supervise starts a child again whenever it dies, until the server is closed.
func (s *Server) supervise(ctx context.Context) {
	defer close(s.stopped)
	for {
		c := s.current(nil)
		select {
		case <-s.stop:
			c.end()
			return
		case <-c.ended:
		}
		_ = c.stdin.Close()
		s.mu.Lock()
		away := max(s.away, s.opts.RestartAfter)
		s.child, s.away = nil, 0
		s.mu.Unlock()
		if s.kind == Envtest {
			// Another one would be another cluster, at another address.
			close(s.gone)
			<-s.stop
			return
		}
		s.opts.Log("the API server is gone; it is started again in %v", away)
		if !s.revive(ctx, away) {
			return
		}
		s.opts.Log("the API server is back")
	}
}

// revive starts the child again after a while, as often as it takes, and reports false when the server was closed.
func (s *Server) revive(ctx context.Context, away time.Duration) bool {
	for {
		select {
		case <-time.After(away):
		case <-s.stop:
			return false
		}
		// The operator may be on its way out: then ctx is done, and its last requests still deserve an answer.
		c, _, err := s.spawn(context.WithoutCancel(ctx))
		if err == nil {
			s.current(c)
			return true
		}
		s.opts.Log("%v", err)
		away = time.Second
	}
}

// current gives the child, after setting it when c is not nil.
func (s *Server) current(c *child) *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c != nil {
		s.child = c
	}
	return s.child
}
