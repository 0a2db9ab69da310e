package leakguard_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/leakguard/leakguard/leakguard"
)

// asks is a metrics filter that lets callers with a token through.
func asks(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(_ logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer known" {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		}), nil
	}, nil
}

// call asks for a page as if from elsewhere, with a token or without one; an empty answer is a failed one.
func call(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "192.0.2.1")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, ""
	}
	return res.StatusCode, string(text)
}

// TestManagerMetricsFilter asks for metrics and for the page behind a filter.
func TestManagerMetricsFilter(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			opts, address := options(t)
			opts.Metrics.FilterProvider = asks
			h := build(t, apiServer(t), opts)
			var started atomic.Bool
			addController(t, h, controller.Options{Reconciler: &seen{}}, "filtered", one(&started))
			stop := run(t, h)
			eventually(t, "the metrics are served", func() bool {
				code, _ := call(t, "http://"+address+"/metrics", "known")
				return code == http.StatusOK
			})
			if code, body := call(t, "http://"+address+"/metrics", "known"); code != http.StatusOK || !strings.Contains(body, "controller_runtime_max_concurrent_reconciles") {
				t.Errorf("metrics for a known caller: got %d and %d bytes without what the manager counts", code, len(body))
			}
			if code, _ := call(t, "http://"+address+"/metrics", ""); code != http.StatusUnauthorized {
				t.Errorf("metrics for a stranger: got %d, want %d", code, http.StatusUnauthorized)
			}
			h.wantControllers(t, map[string]uint64{"filtered": 1})
			wantKnown, wantStranger := http.StatusOK, http.StatusUnauthorized
			if h.guard == nil { // there is no page
				wantKnown, wantStranger = http.StatusNotFound, http.StatusNotFound
			}
			url := "http://" + address + leakguard.PagePath + "?format=text"
			if code, body := call(t, url, "known"); code != wantKnown || (h.guard != nil) != strings.Contains(body, "filtered") {
				t.Errorf("the page for a known caller: got %d and %q, want %d with the controllers", code, body, wantKnown)
			}
			if code, body := call(t, url, ""); code != wantStranger || strings.Contains(body, "filtered") {
				t.Errorf("the page for a stranger: got %d and %q, want %d without", code, body, wantStranger)
			}
			stop()
		})
	}
}

// TestManagerWithoutMetricsFilter shows strangers no names, unless the page is open.
func TestManagerWithoutMetricsFilter(t *testing.T) {
	for _, open := range []bool{false, true} {
		opts, address := options(t)
		mgr, err := leakguard.NewManager(apiServer(t), opts, leakguard.Options{Scale: scale, Registerer: prometheus.NewRegistry(), DebugOpen: open})
		if err != nil {
			t.Fatal(err)
		}
		h := &host{Manager: mgr, guard: mgr.Guard()}
		var started atomic.Bool
		addController(t, h, controller.Options{Reconciler: &seen{}}, "open", one(&started))
		stop := run(t, mgr)
		eventually(t, "the controller is reported", func() bool {
			for _, c := range mgr.Guard().Report().Controllers {
				if c.Name == "open" {
					return true
				}
			}
			return false
		})
		url := "http://" + address + leakguard.PagePath
		eventually(t, "the page is served", func() bool { code, _ := call(t, url, ""); return code == http.StatusOK })
		if _, body := call(t, url, ""); strings.Contains(body, `"name": "open"`) != open {
			t.Errorf("DebugOpen %t: got the page\n%s", open, body)
		}
		stop()
	}
}
