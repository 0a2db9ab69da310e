package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/leakguard/leakguard/stackmatch"
)

// progressStep is after how many bytes of one input a line of progress is printed.
const progressStep = 64 << 20

// input opens what the user named.
type input struct {
	env   *environment
	s     *settings
	light bool
}

// readAll reads all named inputs, in order. A single input may hold several dumps of the process.
func (in *input) readAll(ctx context.Context, names []string) ([]*stackmatch.Dump, error) {
	if first := slices.Index(names, "-"); first >= 0 && slices.Contains(names[first+1:], "-") {
		return nil, errors.New("stackmatch: the standard input is named twice")
	}
	dumps := make([]*stackmatch.Dump, 0, len(names))
	for _, name := range names {
		found, err := in.read(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(names) == 1 {
			return wholeDumps(found), nil
		}
		dumps = append(dumps, largest(found))
	}
	return dumps, nil
}

// largest gives the dump with the most goroutines, the first of those equally large.
func largest(dumps []*stackmatch.Dump) *stackmatch.Dump {
	best := dumps[0]
	for _, d := range dumps {
		if d.Total > best.Total {
			best = d
		}
	}
	return best
}

// wholeDumps leaves out dumps that are no dumps of all goroutines: a crash prints only the one that crashed first.
func wholeDumps(dumps []*stackmatch.Dump) []*stackmatch.Dump {
	if len(dumps) < 2 {
		return dumps
	}
	out := make([]*stackmatch.Dump, 0, len(dumps))
	for _, d := range dumps {
		if d.Total > 1 {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return dumps[len(dumps)-1:]
	}
	return out
}

// read reads one input.
func (in *input) read(ctx context.Context, name string) ([]*stackmatch.Dump, error) {
	r, err := in.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was only read
	dumps, err := stackmatch.ReadAll(in.watched(r, name), stackmatch.ReadOptions{})
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, shown(name))
	}
	return dumps, nil
}

// shown is how an input is called in messages.
func shown(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// open opens a file, the standard input or a URL.
func (in *input) open(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(in.env.stdin), nil
	}
	if isURL(name) {
		return in.fetch(ctx, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("stackmatch: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close() // it was not used
		return nil, fmt.Errorf("%w: %s", stackmatch.ErrDirectory, name)
	}
	return f, nil
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// profileURL completes the address of a process to that of its goroutine profile: "http://localhost:6060" gives
// "http://localhost:6060/debug/pprof/goroutine?debug=2". An address with a query is taken as it is.
func profileURL(name string, light bool) (string, error) {
	u, err := url.Parse(name)
	if err != nil {
		return "", fmt.Errorf("stackmatch: %w", err)
	}
	if u.Host == "" {
		return "", fmt.Errorf("stackmatch: %s has no host", name)
	}
	if u.RawQuery != "" {
		return u.String(), nil
	}
	path := strings.TrimSuffix(u.Path, "/")
	switch {
	case strings.HasSuffix(path, "/goroutine"):
	case strings.HasSuffix(path, "/pprof"):
		path += "/goroutine"
	case path == "" || strings.HasSuffix(path, "/debug"):
		path = strings.TrimSuffix(path, "/debug") + "/debug/pprof/goroutine"
	default:
		return u.String(), nil // somebody's own address of a dump
	}
	u.Path = path
	u.RawQuery = "debug=2"
	if light {
		u.RawQuery = "debug=1"
	}
	return u.String(), nil
}

// fetch gets a dump from a running process. The timeout covers the body as well.
func (in *input) fetch(ctx context.Context, name string) (io.ReadCloser, error) {
	address, err := profileURL(name, in.light)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("stackmatch: %w", err)
	}
	client := http.Client{Timeout: in.s.timeout}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("stackmatch: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close() // its content is of no interest
		return nil, fmt.Errorf("stackmatch: %s answered %s", address, response.Status)
	}
	return response.Body, nil
}

// watched reports progress while a long input is read.
func (in *input) watched(r io.Reader, name string) io.Reader {
	if in.s.quiet {
		return r
	}
	return &progress{r: r, w: in.env.stderr, name: shown(name)}
}

// progress counts what is read.
type progress struct {
	r       io.Reader
	w       io.Writer
	name    string
	n, next int64
}

// Read reads from the input and prints a line after each step.
func (p *progress) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.n += int64(n)
	if p.n >= p.next+progressStep {
		p.next = p.n / progressStep * progressStep
		_, _ = fmt.Fprintf(p.w, "stackmatch: %s: %d MiB read\n", p.name, p.n>>20) // progress only
	}
	return n, err
}

// message is an error on one line, named after the command.
func message(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	if !strings.HasPrefix(text, "stackmatch: ") {
		text = "stackmatch: " + text
	}
	return text
}
