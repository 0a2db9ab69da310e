package leaktest_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leakguard/leakguard/leakguard/leaktest"
	"github.com/leakguard/leakguard/probes"
)

func TestVerifyResourcesBodies(t *testing.T) {
	// A body that is larger than what the client reads ahead keeps its connection until it is closed.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 1<<20))
	}))
	defer server.Close()
	for _, tt := range []struct {
		name  string
		close bool
	}{{"left open", false}, {"closed", true}} {
		t.Run(tt.name, func(t *testing.T) {
			transport := probes.NewTransport(probes.LedgerOptions{})
			client := &http.Client{Transport: transport.Wrap(http.DefaultTransport)}
			var response *http.Response
			f := runFake("TestInner", func(f *fake) {
				leaktest.VerifyResources(f, []probes.Probe{transport}, leaktest.Settle(soon))
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				if response, err = client.Do(request); err != nil { //nolint:bodyclose // that is the leak
					t.Error(err)
				} else if tt.close {
					_ = response.Body.Close()
				}
			})
			if tt.close {
				wantSilence(t, f)
				return
			}
			wantFailure(t, f, "TestInner left resources behind", "http: 1 response bodies, before the test 0")
			_ = response.Body.Close()
		})
	}
}

func TestVerifyResourcesDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // there is no /proc: the probe counts nothing
	}
	const many = 32 // more than a connection or two of an earlier test, which may be closed meanwhile
	var files []*os.File
	leaky := runFake("TestInner", func(f *fake) {
		leaktest.VerifyResources(f, []probes.Probe{leaktest.FileDescriptors()}, leaktest.Settle(soon))
		for range many {
			file, err := os.Open(os.DevNull)
			if err != nil {
				t.Error(err)
			}
			files = append(files, file)
		}
	})
	wantFailure(t, leaky, "file descriptors, before the test")
	for _, file := range files {
		_ = file.Close()
	}
	clean := runFake("TestInner", func(f *fake) {
		leaktest.VerifyResources(f, []probes.Probe{leaktest.FileDescriptors()})
		again, err := os.Open(os.DevNull)
		if err != nil {
			t.Error(err)
		}
		_ = again.Close()
	})
	wantSilence(t, clean)
}

func TestVerifyResourcesCounter(t *testing.T) {
	var n atomic.Int64
	n.Store(5)
	count := leaktest.Counter("pod_cache", func() int { return int(n.Load()) })
	body := func(by int64, opts ...leaktest.Option) func(f *fake) {
		return func(f *fake) {
			leaktest.VerifyResources(f, []probes.Probe{count}, append(opts, leaktest.Settle(soon))...)
			n.Add(by)
		}
	}
	wantFailure(t, runFake("TestInner", body(2)), "pod_cache: 7 pod cache, before the test 5")
	wantSilence(t, runFake("TestInner", body(0)))
	wantSilence(t, runFake("TestInner", body(-3)))
	wantSilence(t, runFake("TestInner", body(2, leaktest.AllowResource("pod cache", 2, "it is the test's cache"))))
}

func TestVerifyResourcesMisuse(t *testing.T) {
	panics := leaktest.Counter("panics", func() int { panic("on purpose") })
	for name, tt := range map[string]struct {
		list []probes.Probe
		says string
	}{
		"no probe":     {nil, "check nothing"},
		"bad name":     {[]probes.Probe{leaktest.Counter("Bad Name", func() int { return 0 })}, "Bad Name"},
		"probe panics": {[]probes.Probe{panics}, "did not answer"},
	} {
		f := runFake("TestInner", func(f *fake) { leaktest.VerifyResources(f, tt.list) })
		if len(f.failures) != 1 || !strings.Contains(f.text(), tt.says) {
			t.Errorf("%s: got %q, want one failure that says %q", name, f.failures, tt.says)
		}
	}
}
