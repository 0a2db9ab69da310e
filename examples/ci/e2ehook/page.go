package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leakguard/leakguard/leakguard"
)

// report is what the page serves.
type report = leakguard.Report

// errNoAnswer occurs when the page did not give what was waited for in time.
var errNoAnswer = errors.New("e2ehook: no answer in time")

// page is where the operator serves its report.
type page struct {
	url, tokenFile, caFile string
}

// pollEvery is the time between two requests.
const pollEvery = 500 * time.Millisecond

// await asks until the report is as wanted. When the time is over the last report comes with an error that wraps errNoAnswer.
func (p *page) await(ctx context.Context, limit time.Duration, wanted func(*report) bool) (*report, error) {
	client, err := p.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last *report
	var lastErr error
	for {
		r, err := p.get(ctx, client)
		if err == nil {
			last = r
			if wanted(r) {
				return r, nil
			}
		} else if ctx.Err() == nil {
			lastErr = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if last == nil && lastErr == nil {
				lastErr = err
			}
			return last, fmt.Errorf("%w: %s within %s: %w", errNoAnswer, p.url, limit, errors.Join(lastErr, ctx.Err()))
		}
	}
}

// maxReport bounds a report, in bytes.
const maxReport = 64 << 20

// get asks once.
func (p *page) get(ctx context.Context, client *http.Client) (*report, error) {
	body, err := p.fetch(ctx, client, p.url, url.Values{"format": {"json"}})
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("e2ehook: %s does not answer with a report: %w", p.url, err)
	}
	if r.Schema != leakguard.FindingSchema {
		return nil, fmt.Errorf("e2ehook: the report has schema %d, this command knows %d", r.Schema, leakguard.FindingSchema)
	}
	return &r, nil
}

// fetch gets an address with the page's token.
func (p *page) fetch(ctx context.Context, client *http.Client, address string, query url.Values) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("e2ehook: %w", err)
	}
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("e2ehook: %w", err)
	}
	if p.tokenFile != "" {
		token, rerr := os.ReadFile(p.tokenFile)
		if rerr != nil {
			return nil, fmt.Errorf("e2ehook: %w", rerr)
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("e2ehook: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReport))
	if err != nil {
		return nil, fmt.Errorf("e2ehook: reading %s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("e2ehook: %s answers %s", address, response.Status)
	}
	return body, nil
}

func (p *page) client() (*http.Client, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if p.caFile != "" {
		pem, err := os.ReadFile(p.caFile)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: %s has no certificates", errUsage, p.caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}, nil
}

// readReport reads what before has written.
func readReport(file string) (*report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("e2ehook: %w", err)
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("e2ehook: %s: %w", file, err)
	}
	return &r, nil
}

func writeJSON(file string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("e2ehook: %w", err)
	}
	return writeFile(file, append(data, '\n'))
}

func writeFile(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return fmt.Errorf("e2ehook: %w", err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("e2ehook: %w", err)
	}
	return nil
}

// keep stores the report, and with -pprof a dump and profiles, in the folder of artefacts.
func (o *options) keep(ctx context.Context, now *report) error {
	errs := []error{writeJSON(filepath.Join(o.artifacts, "leakguard.json"), now)}
	if o.pprof == "" {
		return errors.Join(errs...)
	}
	client, err := o.page.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, o.answer)
	defer cancel()
	for _, f := range []struct {
		profile, file string
		query         url.Values
	}{
		{"goroutine", "goroutines.txt", url.Values{"debug": {"2"}}},
		{"goroutine", "goroutines.pb.gz", nil},
		{"heap", "heap.pb.gz", url.Values{"gc": {"1"}}},
	} {
		data, err := o.page.fetch(ctx, client, strings.TrimSuffix(o.pprof, "/")+"/"+f.profile, f.query)
		if err == nil {
			err = writeFile(filepath.Join(o.artifacts, f.file), data)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
