package apiserver

import (
	"errors"
	"fmt"
)

// Kind is where the API comes from.
type Kind string

// The kinds of API servers.
const (
	// Auto chooses: Kubeconfig when $KUBECONFIG is set, Envtest when $KUBEBUILDER_ASSETS is set, Memory otherwise.
	Auto Kind = "auto"
	// Memory is the API in memory of package miniapi.
	Memory Kind = "memory"
	// Envtest is a real kube-apiserver and etcd, whose binaries lie in $KUBEBUILDER_ASSETS.
	Envtest Kind = "envtest"
	// Kubeconfig is the cluster that kubectl would talk to.
	Kubeconfig Kind = "kubeconfig"
)

// ErrKind is wrapped by the error of an unknown kind.
var ErrKind = errors.New("apiserver: unknown kind")

// ParseKind gives the kind of a name.
func ParseKind(name string) (Kind, error) {
	switch k := Kind(name); k {
	case Auto, Memory, Envtest, Kubeconfig:
		return k, nil
	}
	return "", fmt.Errorf("%w %q: want auto, memory, envtest or kubeconfig", ErrKind, name)
}

// Resolve decides what Auto means in an environment.
func (k Kind) Resolve(getenv func(string) string) Kind {
	switch {
	case k != Auto:
		return k
	case getenv("KUBECONFIG") != "":
		return Kubeconfig
	case getenv("KUBEBUILDER_ASSETS") != "":
		return Envtest
	}
	return Memory
}
