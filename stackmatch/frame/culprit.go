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
// Package main itself always is the main module's; what the main module has vendored is not.
func OriginOf(function, main string) Origin {
	pkg := withoutVendor(Package(function))
	if isOwn(pkg) {
		return Kubernetes
	}
	pkg = strings.TrimSuffix(pkg, "_test") // of the main module's own root folder
	switch {
	case pkg == "main", main != "" && within(pkg, main):
		return Main
	case IsStandard(pkg):
		return Standard
	case IsKubernetes(pkg):
		return Kubernetes
	}
	return Library
}

// IsStandard reports whether an import path belongs to the standard library, or is empty. A copy under the standard
// library's own vendor folder counts too. A module may lack the dot in its first element that go get wants, as in
// "module operator", so the first element must be one of the standard library's.
func IsStandard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	switch first {
	case "", "archive", "arena", "bufio", "builtin", "bytes", "cmp", "compress", "container", "context", "crypto",
		"database", "debug", "embed", "encoding", "errors", "expvar", "flag", "fmt", "go", "hash", "html", "image", "index",
		"internal", "io", "iter", "log", "maps", "math", "mime", "net", "os", "path", "plugin", "reflect", "regexp",
		"runtime", "simd", "slices", "sort", "strconv", "strings", "structs", "sync", "syscall", "testing", "text", "time",
		"unicode", "unique", "unsafe", "uuid", "vendor", "weak":
		return true
	}
	return false
}

// IsKubernetes reports whether an import path is one of the libraries that every operator is built on, whose frames
// never are the place to fix. Vendored copies count.
func IsKubernetes(pkg string) bool {
	pkg = withoutVendor(pkg)
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

// withoutVendor gives the path of a vendored package, or function, as it is outside the vendor folder.
func withoutVendor(path string) string {
	if i := strings.LastIndex(path, "/vendor/"); i >= 0 {
		return path[i+len("/vendor/"):]
	}
	return path
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

// origin says whose code a frame is. A function literal of a Kubernetes library that the compiler has inlined into the operator's
// code is named after the operator's function, and only its file says where it was written.
func (f Frame) origin(main string) Origin {
	o := OriginOf(f.Function, main)
	module, _, versioned := strings.Cut(f.File, "@v")
	if o != Main || !versioned {
		return o
	}
	for ; module != ""; _, module, _ = strings.Cut(module, "/") { // wherever the cache of modules is
		if IsKubernetes(module) {
			return Kubernetes
		}
	}
	return o
}

// Culprit picks the frame to blame from a stack, leaf first, and its creator (zero when unknown): the first frame of the
// main module; else the creator if that is the main module's; else the first frame outside the standard library and
// the Kubernetes libraries, the creator last. ok is false when there is none: then the code to fix is in no frame, and
// a caller must say so instead of naming a false one.
func Culprit(stack []Frame, creator Frame, main string) (f Frame, origin Origin, ok bool) {
	for _, want := range []Origin{Main, Library} {
		for _, f := range stack {
			if f.origin(main) == want {
				return f, want, true
			}
		}
		if !creator.IsZero() && creator.origin(main) == want {
			return creator, want, true
		}
	}
	return Frame{}, Standard, false
}
