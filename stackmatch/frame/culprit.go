package frame

import (
	"runtime/debug"
	"strings"
)

// Origin says whose code a function is.
type Origin uint8

// Whose code a function is, from the least to the most telling.
const (
	// Standard is the Go standard library, the runtime included, and names without a package.
	Standard Origin = iota
	// Kubernetes is a library that operators are built on (k8s.io, sigs.k8s.io and their queues and streams), or leakguard itself.
	Kubernetes
	// Library is any other module.
	Library
	// Main is the main module: the operator's own code.
	Main
)

// String gives "standard", "kubernetes", "library" or "main".
func (o Origin) String() string {
	return [...]string{"standard", "kubernetes", "library", "main"}[min(o, Main)]
}

// OriginOf says whose code a function with this full name is, when main is the main module's path ("" for unknown).
// Package main itself always is the main module's.
func OriginOf(function, main string) Origin {
	pkg := Package(function)
	pkg = strings.TrimSuffix(pkg, "_test")
	switch {
	case isOwn(pkg):
		return Kubernetes
	case pkg == "main", main != "" && within(pkg, main):
		return Main
	case IsStandard(pkg):
		return Standard
	case IsKubernetes(pkg):
		return Kubernetes
	}
	return Library
}

// IsStandard reports whether an import path belongs to the standard library: its first element has no dot. A copy under
// a vendor folder of the standard library counts too.
func IsStandard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return !strings.Contains(first, ".")
}

// IsKubernetes reports whether an import path is one of the libraries that every operator is built on, whose frames
// never are the place to fix. Vendored copies count.
func IsKubernetes(pkg string) bool {
	if i := strings.LastIndex(pkg, "/vendor/"); i >= 0 {
		pkg = pkg[i+len("/vendor/"):]
	}
	for _, module := range []string{
		"k8s.io/client-go", "k8s.io/apimachinery", "k8s.io/api", "k8s.io/apiserver", "k8s.io/utils", "k8s.io/klog",
		"k8s.io/component-base", "k8s.io/kube-openapi", "k8s.io/apiextensions-apiserver",
		"sigs.k8s.io/controller-runtime", "sigs.k8s.io/json", "sigs.k8s.io/structured-merge-diff",
		"golang.org/x/net", "golang.org/x/sync",
	} {
		if within(pkg, module) {
			return true
		}
	}
	return false
}

// isOwn reports whether a package is leakguard's own instrumentation, which wraps the user's code and so stands in
// their stacks.
func isOwn(pkg string) bool {
	rest, ok := strings.CutPrefix(pkg, "github.com/leakguard/leakguard/")
	if !ok {
		return false
	}
	first, _, _ := strings.Cut(rest, "/")
	return first == "leakguard" || first == "probes" || first == "stackmatch" || first == "memstats"
}

// within reports whether an import path is a module's path or below it.
func within(pkg, module string) bool {
	rest, ok := strings.CutPrefix(pkg, module)
	return ok && (rest == "" || rest[0] == '/')
}

// MainModule gives the path of the running program's main module from its build information, or "" when there is none
// (a binary built outside module mode).
func MainModule() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Path
}

// Culprit picks the frame to blame from a stack, leaf first, and its creator (zero when unknown): the first frame of the
// main module; else the creator if that is the main module's; else the first frame outside the standard library and
// the Kubernetes libraries, the creator last. ok is false when there is none: then the code to fix is in no frame, and a caller must say
// so instead of naming a false one.
func Culprit(stack []Frame, creator Frame, main string) (f Frame, origin Origin, ok bool) {
	for _, want := range []Origin{Main, Library} {
		for _, f := range stack {
			if OriginOf(f.Function, main) == want {
				return f, want, true
			}
		}
		if !creator.IsZero() && OriginOf(creator.Function, main) == want {
			return creator, want, true
		}
	}
	return Frame{}, Standard, false
}
