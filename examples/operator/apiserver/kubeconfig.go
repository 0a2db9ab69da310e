package apiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// reachTimeout is how long a cluster may take to answer at all.
const reachTimeout = 10 * time.Second

// connect gives the configuration of the cluster that kubectl would talk to, after it answered and has the custom resource.
func connect(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("apiserver: kubeconfig: nothing in %s", strings.Join(rules.Precedence, ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("apiserver: kubeconfig: %w", err)
	}
	if cfg.QPS == 0 {
		cfg.QPS = -1 // as controller-runtime does it: the server decides who has to wait
	}
	if err = reach(ctx, cfg); err != nil {
		return nil, fmt.Errorf("apiserver: the cluster of the kubeconfig does not answer: %w", err)
	}
	if err = install(cfg, crd); err != nil {
		return nil, fmt.Errorf("apiserver: install the custom resource: %w", err)
	}
	return cfg, nil
}

// install makes the custom resource known to a cluster, or brings it up to date. Another replica may do the same at the
// same moment and be faster; the next try then finds what it made.
func install(cfg *rest.Config, crd *apiextensionsv1.CustomResourceDefinition) error {
	var err error
	for range 3 {
		_, err = envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd.DeepCopy()}})
		if err == nil {
			return nil
		}
	}
	return err
}

func reach(ctx context.Context, cfg *rest.Config) error {
	probe := rest.CopyConfig(cfg)
	probe.Timeout = reachTimeout
	client, err := discovery.NewDiscoveryClientForConfig(probe)
	if err != nil {
		return err
	}
	answered := make(chan error, 1) // ServerVersion takes no context, but it does have a timeout
	go func() {
		_, versionErr := client.ServerVersion()
		answered <- versionErr
	}()
	select {
	case err = <-answered:
		return err
	case <-ctx.Done():
		return errors.Join(ctx.Err(), <-answered)
	}
}
