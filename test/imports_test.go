package test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/leakguard/leakguard"

// allowed is the import table of the design: what each package may import beside the standard library. An entry
// allows a package and those below it; one that ends in "$" allows it alone.
var allowed = map[string][]string{
	"stackmatch/frame":          {},
	"stackmatch":                {module + "/stackmatch/frame$", "github.com/google/pprof/profile$"},
	"stackmatch/stackmatchtest": {module + "/stackmatch$", module + "/stackmatch/frame$"},
	"stackmatch/rulefile": {
		module + "/stackmatch$", module + "/stackmatch/frame$", "sigs.k8s.io/yaml", "github.com/google/cel-go", "github.com/fsnotify/fsnotify",
	},
	"memstats":        {module + "/stackmatch/frame$", "github.com/google/pprof/profile$"},
	"probes":          {module + "/stackmatch/frame$"},
	"probes/clientgo": {module + "/probes$", module + "/stackmatch/frame$", "k8s.io/client-go", "k8s.io/apimachinery"},
	"leakguard": {
		module + "/stackmatch$", module + "/stackmatch/frame$", module + "/memstats$", module + "/probes", "sigs.k8s.io/controller-runtime",
		"k8s.io/client-go", "k8s.io/apimachinery", "k8s.io/api", "github.com/prometheus/client_golang", "github.com/prometheus/client_model/go", "github.com/go-logr/logr",
		"github.com/KimMachineGun/automemlimit/memlimit$",
	},
	"leakguard/leaktest": {
		module + "/stackmatch$", module + "/stackmatch/frame$", module + "/memstats$", module + "/probes", "go.uber.org/goleak$", "github.com/go-logr/logr$",
	},
	"leakguard/leaktest/reconcilertest": {
		module + "/leakguard/leaktest$", module + "/stackmatch$", module + "/stackmatch/frame$", module + "/memstats$", module + "/probes",
		"sigs.k8s.io/controller-runtime", "k8s.io/client-go", "k8s.io/apimachinery", "k8s.io/api", "github.com/go-logr/logr$",
	},
}

// free are the folders whose packages are commands and examples: they may import what the module requires.
var free = []string{"examples/", "stackmatch/cmd/", "memstats/cmd/", "test"}

// imports lists the packages of the module with their direct imports.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", module+"/...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	list := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		list[strings.TrimPrefix(words[0], module+"/")] = words[1:]
	}
	if len(list) < 5 {
		t.Fatalf("go list gives %d packages only", len(list))
	}
	return list
}

func isFree(pkg string) bool {
	for _, prefix := range free {
		if strings.HasPrefix(pkg, prefix) {
			return true
		}
	}
	return false
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// permits reports whether one entry of the table allows an import.
func permits(entry, path string) bool {
	if exact, ok := strings.CutSuffix(entry, "$"); ok {
		return path == exact
	}
	return path == entry || strings.HasPrefix(path, entry+"/")
}

func TestImportGraph(t *testing.T) {
	t.Parallel()
	for pkg, list := range imports(t) {
		if isFree(pkg) {
			continue
		}
		table, known := allowed[pkg]
		if !known {
			t.Errorf("package %s is in no row of the import table", pkg)
			continue
		}
		for _, path := range list {
			if isStandard(path) {
				continue
			}
			ok := false
			for _, entry := range table {
				ok = ok || permits(entry, path)
			}
			if !ok {
				t.Errorf("package %s may not import %s", pkg, path)
			}
		}
	}
}

// TestNoTemplates keeps the template packages out of what an operator links: one call switches off the linker's method
// pruning and costs an operator 14.6 MB.
func TestNoTemplates(t *testing.T) {
	t.Parallel()
	for pkg, list := range imports(t) {
		if isFree(pkg) {
			continue
		}
		for _, path := range list {
			if path == "html/template" || path == "text/template" {
				t.Errorf("package %s imports %s", pkg, path)
			}
		}
	}
}

// TestModfileOfTheNewestControllerRuntime checks that the modfile of the second supported version names it: with the one
// of go.mod in it, half of the runs would test nothing new.
func TestModfileOfTheNewestControllerRuntime(t *testing.T) {
	text, err := os.ReadFile("../.ci/controller-runtime-v0.25.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\tsigs.k8s.io/controller-runtime v0.25.") {
		t.Error("the modfile does not name controller-runtime v0.25: go get -modfile=.ci/controller-runtime-v0.25.mod sigs.k8s.io/controller-runtime@v0.25")
	}
}
