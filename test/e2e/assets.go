package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// asset is a binary that envtest needs and the nested module that it is built from.
type asset struct {
	name   string
	module string // whose version is the binary's
	// ldflags gives the linker flags for a version.
	ldflags func(version string) string
}

func assets() []asset {
	return []asset{
		{"kube-apiserver", "k8s.io/kubernetes", func(version string) string {
			parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
			const p = "k8s.io/component-base/version."
			return fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s", p, version, p, parts[0], p, parts[1])
		}},
		{"etcd", "go.etcd.io/etcd/server/v3", func(string) string { return "-s -w" }},
	}
}

// Assets gives the folder with the binaries for envtest: $KUBEBUILDER_ASSETS if that is set, else one in the user's cache
// folder, named after the version of Kubernetes. There it builds what is missing, which takes minutes. modules is the
// folder of the nested modules kube-apiserver and etcd.
func Assets(ctx context.Context, modules string) (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("e2e: %w", err)
	}
	version, err := requirement(filepath.Join(modules, "kube-apiserver"), "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "leakguard", "envtest", strings.TrimPrefix(version, "v"))
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("e2e: %w", err)
	}
	for _, a := range assets() {
		if err = a.build(ctx, filepath.Join(modules, a.name), dir); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// build makes a binary beside its place and moves it there, so that what lies there is whole.
func (a asset) build(ctx context.Context, source, dir string) error {
	target := filepath.Join(dir, a.name)
	if runtime.GOOS == "windows" {
		target += ".exe"
	}
	if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	version, err := requirement(source, a.module)
	if err != nil {
		return err
	}
	temporary := fmt.Sprintf("%s.%d", target, os.Getpid())
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", a.ldflags(version), "-o", temporary, ".")
	build.Dir = source
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("e2e: build %s %s: %w\n%s", a.name, version, err, output)
	}
	if err := os.Rename(temporary, target); err != nil {
		return fmt.Errorf("e2e: %w", err)
	}
	return nil
}

// requirement reads which version of a module another one requires.
func requirement(dir, module string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("e2e: %w", err)
	}
	match := regexp.MustCompile(`(?m)^\s*(?:require\s+)?` + regexp.QuoteMeta(module) + `\s+(v\S+)`).FindSubmatch(text)
	if match == nil {
		return "", fmt.Errorf("e2e: %s requires no %s", dir, module)
	}
	return string(match[1]), nil
}
