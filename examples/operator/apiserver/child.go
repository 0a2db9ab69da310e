package apiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/leakguard/leakguard/examples/operator/miniapi"
)

// childArg is the first argument of a process that is to be an API server: childArg KIND FOLDER.
const childArg = "__api-server"

// hello is the one line that a child prints when its API answers.
type hello struct {
	Host        string `json:"host"`
	CA          []byte `json:"ca"`
	Token       string `json:"token,omitempty"`
	Certificate []byte `json:"certificate,omitempty"`
	Key         []byte `json:"key,omitempty"`
}

func (h hello) config(kind Kind) *rest.Config {
	cfg := &rest.Config{
		Host: h.Host, BearerToken: h.Token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: h.CA, CertData: h.Certificate, KeyData: h.Key},
	}
	if kind == Memory {
		cfg.ContentType = "application/json"
	}
	return cfg
}

// IsChild reports whether a process with these arguments was started to be an API server.
func IsChild(args []string) bool { return len(args) == 4 && args[1] == childArg }

// Child is the life of such a process. It serves until its standard input ends and returns the exit code.
func Child(args []string, crd *apiextensionsv1.CustomResourceDefinition) int {
	// The terminal sends an interrupt to the whole group of processes. The parent still needs the API to shut down in order.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	commands := make(chan string)
	go func() {
		defer cancel()
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			select {
			case commands <- lines.Text():
			case <-ctx.Done():
			}
		}
	}()
	serve := serveMemory
	if Kind(args[2]) == Envtest {
		serve = serveEnvtest
	}
	err := serve(ctx, args[3], crd, commands)
	// The parent removes the folder too; it cannot when it was killed.
	if ctx.Err() != nil {
		err = errors.Join(err, os.RemoveAll(args[3]))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "API server:", err)
		return 1
	}
	return 0
}

func serveMemory(ctx context.Context, dir string, crd *apiextensionsv1.CustomResourceDefinition, _ <-chan string) error {
	return miniapi.Serve(ctx, dir, func(id miniapi.Identity) {
		say(hello{Host: "https://" + id.Address, CA: id.Certificate, Token: id.Token})
	}, append(miniapi.Builtins(), resources(crd)...)...)
}

// resources gives what miniapi needs to know of a custom resource.
func resources(crd *apiextensionsv1.CustomResourceDefinition) []miniapi.Resource {
	var out []miniapi.Resource
	for _, v := range crd.Spec.Versions {
		out = append(out, miniapi.Resource{
			Group: crd.Spec.Group, Version: v.Name, Plural: crd.Spec.Names.Plural, Kind: crd.Spec.Names.Kind,
			Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
			Status:     v.Subresources != nil && v.Subresources.Status != nil, Custom: true,
		})
	}
	return out
}

func say(h hello) {
	line, err := json.Marshal(h)
	if err == nil {
		_, err = os.Stdout.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "API server:", err)
	}
}

// listen reads the one line that a child prints.
func listen(out io.Reader, kind Kind) (*rest.Config, error) {
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return nil, errors.New("it ended before it was ready")
	}
	var h hello
	if err = json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("it said %q: %w", line, err)
	}
	return h.config(kind), nil
}
