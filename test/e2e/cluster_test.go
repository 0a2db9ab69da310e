package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/leakguard/leakguard/examples/operator/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// cluster starts a kube-apiserver and gives a kubeconfig file for it.
func cluster(t *testing.T) (*rest.Config, string) {
	t.Helper()
	env := &envtest.Environment{BinaryAssetsDirectory: needAssets(t)}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if stopErr := env.Stop(); stopErr != nil {
			t.Error(stopErr)
		}
	})
	return cfg, writeKubeconfig(t, env, cfg.Host)
}

// writeKubeconfig writes a kubeconfig file for an administrator who finds the cluster at a host.
func writeKubeconfig(t *testing.T, env *envtest.Environment, host string) string {
	t.Helper()
	user, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Clusters {
		c.Server = host
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err = clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Two replicas on one cluster: the leader does the work, and the standby is watched all the same.
func TestLeaderAndStandby(t *testing.T) {
	t.Parallel()
	cfg, file := cluster(t)
	environment := []string{"KUBECONFIG=" + file}
	args := []string{"--api=auto", "--leak=none", "--leader-elect", "--duration=30s", "--metrics-bind-address=0"}
	runs := []*run{start(t, paths.operator, environment, args...), start(t, paths.operator, environment, args...)}
	leaders := 0
	for _, run := range runs {
		r, err := run.wait()
		if err != nil {
			t.Error(err)
			continue
		}
		if r.ReconcilesPerSecond["app"] > 0 {
			leaders++
		}
		s := r.Report.Sampling
		if r.API != "kubeconfig" || len(r.Alarms) > 0 || s.Due == 0 || float64(s.Taken) < 0.8*float64(s.Due) {
			t.Errorf("got API %s, alarms %v, %d of %d samples, want kubeconfig, none and at least 80 %%", r.API, r.Alarms, s.Taken, s.Due)
		}
	}
	// Both end at about the same time; the standby may get to lead for a moment.
	if leaders == 0 {
		t.Error("nobody led")
	}
	left := &v1alpha1.AppList{}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err = c.List(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) > 0 {
		t.Errorf("got %d Apps left in the cluster, want none", len(left.Items))
	}
}
