package leakguard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leakguard/leakguard/leakguard"
)

// openBody sends a request and leaves its body open until the test ends.
func openBody(t *testing.T, client *http.Client, url string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
}

// TestManagerReportsWhatIsCounted has an informer, a watch and a body open, none of them a leak: their numbers are in the report,
// on the page and in the metrics, and there is no finding.
func TestManagerReportsWhatIsCounted(t *testing.T) {
	cfg := apiServer(t)
	opts, address := options(t)
	registry := prometheus.NewRegistry()
	mgr, err := leakguard.NewManager(cfg, opts, leakguard.Options{Scale: scale, Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	idle := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	if err := ctrl.NewControllerManagedBy(mgr).Named("counted").For(&corev1.ConfigMap{}).Complete(idle); err != nil {
		t.Fatal(err)
	}
	createMaps(t, cfg, 3)
	stop := run(t, mgr)
	openBody(t, mgr.GetHTTPClient(), cfg.Host+"/api/v1/namespaces/default/secrets?watch=true")
	openBody(t, mgr.GetHTTPClient(), cfg.Host+"/api/v1/namespaces/default/configmaps")

	want := map[string]float64{ // the manager's own watch of ConfigMaps is one of the two
		"http|watches": 2, "http|response bodies": 1, "informers|informers": 1, "informers|informers of v1.ConfigMap": 1, "informers|event handlers": 1,
	}
	eventually(t, "the report has the numbers", func() bool { return containsCounts(counts(mgr.Guard().Report()), want) })
	eventually(t, "the metrics have the numbers", func() bool {
		got := map[string]float64{}
		for resource, n := range gauges(t, registry, "leakguard_resource", "resource") {
			for _, probe := range []string{"http", "informers"} {
				got[probe+"|"+resource] = n
			}
		}
		return containsCounts(got, want)
	})
	eventually(t, "the open body is named", func() bool { return len(openBodies(mgr.Guard().Report())) == 1 })
	checkReadingsPage(t, address)
	for _, f := range mgr.Guard().Report().Findings {
		if f.Rule == "accounting" {
			t.Errorf("nothing leaks, but the report has %v", &f)
		}
	}
	stop()
}

func checkReadingsPage(t *testing.T, address string) {
	t.Helper()
	url := "http://" + address + leakguard.PagePath
	var r leakguard.Report
	if err := json.Unmarshal([]byte(get(t, url, "browser")), &r); err != nil {
		t.Fatal(err)
	}
	if got := counts(&r); got["http|watches"] == 0 || got["process|threads"] == 0 {
		t.Errorf("the page has the readings %v, want watches and threads", got)
	}
	body := openBodies(&r)
	if len(body) != 1 || body[0].What != "GET configmaps" || body[0].Ended || body[0].AgeSeconds <= 0 || body[0].Culprit == nil ||
		!strings.HasSuffix(body[0].Culprit.Function, "_test.openBody") || len(body[0].Stack) < 2 {
		t.Errorf("the page names the open bodies %+v, want one with its stack", body)
	}
	text := get(t, url, "curl/8")
	for _, part := range []string{"\nresources:\n", "informers of v1.ConfigMap", "GET configmaps, open for "} {
		if !strings.Contains(text, part) {
			t.Errorf("the text page lacks %q:\n%s", part, text)
		}
	}
}

// openBodies gives the bodies that a report names.
func openBodies(r *leakguard.Report) []leakguard.Opened {
	for _, x := range r.Readings {
		if x.Resource == "response bodies" {
			return x.Open
		}
	}
	return nil
}

// counts gives the readings of a report by "probe|resource".
func counts(r *leakguard.Report) map[string]float64 {
	out := map[string]float64{}
	for _, x := range r.Readings {
		out[fmt.Sprint(x.Probe, "|", x.Resource)] += x.Count
	}
	return out
}

func containsCounts(got, want map[string]float64) bool {
	for name, n := range want {
		if got[name] != n {
			return false
		}
	}
	return true
}
