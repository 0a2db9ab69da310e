package frame_test

import (
	"go/build"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

func TestOriginOf(t *testing.T) {
	tests := []struct {
		function, main string
		want           frame.Origin
	}{
		{"main.main", "", frame.Main},
		{"main.(*T).run.func1", "example.com/app", frame.Main},
		{"example.com/app/controllers.(*R).Reconcile", "example.com/app", frame.Main},
		{"example.com/app_test.TestX", "example.com/app", frame.Main},
		{"example.com/application.F", "example.com/app", frame.Library},
		{"example.com/app.F", "", frame.Library},
		{"operator/controllers.(*R).Reconcile", "operator", frame.Main},
		{"operator/controllers.(*R).Reconcile", "", frame.Library},
		{"net/http.(*persistConn).readLoop", "example.com/app", frame.Standard},
		{"runtime.gopark", "", frame.Standard},
		{"panic", "", frame.Standard},
		{"_cgoexp_0123_callback", "", frame.Standard},
		{"vendor/golang.org/x/net/http2.(*ClientConn).readLoop", "", frame.Standard},
		{"golang.org/x/net/http2.(*ClientConn).readLoop", "", frame.Kubernetes},
		{"golang.org/x/sync/errgroup.(*Group).Go.func1", "", frame.Kubernetes},
		{"k8s.io/client-go/tools/cache.(*controller).Run", "", frame.Kubernetes},
		{"k8s.io/client-go-extra/x.F", "", frame.Library},
		{"k8s.io/kubernetes/vendor/k8s.io/client-go/tools/cache.(*controller).Run", "", frame.Kubernetes},
		{"example.com/app/vendor/k8s.io/client-go/tools/cache.(*controller).Run", "example.com/app", frame.Kubernetes},
		{"example.com/app/vendor/example.com/lib.F", "example.com/app", frame.Library},
		{"sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Start", "", frame.Kubernetes},
		{"k8s.io/kubernetes/pkg/controller/garbagecollector.(*GarbageCollector).Run", "", frame.Library},
		{"github.com/leakguard/leakguard/probes.(*Set).Watch", "", frame.Kubernetes},
		{"github.com/leakguard/leakguard/examples/operator.run", "github.com/leakguard/leakguard", frame.Main},
		{"github.com/rancher/wrangler/v3/pkg/summary/client.(*c).Watch.func1", "", frame.Library},
	}
	for _, test := range tests {
		if got := frame.OriginOf(test.function, test.main); got != test.want {
			t.Errorf("OriginOf(%q, %q) = %v, want %v", test.function, test.main, got, test.want)
		}
	}
}

// TestIsStandardComplete compares with the folders of the standard library of the Go that runs the test.
func TestIsStandardComplete(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(build.Default.GOROOT, "src"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("standard library of %s: %v", runtime.Version(), err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "cmd" && e.Name() != "testdata" && !frame.IsStandard(e.Name()) {
			t.Errorf("%s is not taken for the standard library's", e.Name())
		}
	}
}

func TestCulprit(t *testing.T) {
	f := func(function string) frame.Frame { return frame.Frame{Function: function, File: "/src/x.go", Line: 1} }
	inlined := func(file string) frame.Frame {
		return frame.Frame{Function: "example.com/app.F.Wrappers.func2", File: file, Line: 1}
	}
	std, kube, lib, own := f("net/http.(*T).F"), f("k8s.io/client-go/rest.F"), f("example.com/lib.F"), f("example.com/app.F")
	tests := []struct {
		name    string
		stack   []frame.Frame
		creator frame.Frame
		want    frame.Frame
		origin  frame.Origin
		ok      bool
	}{
		{"main before library", []frame.Frame{std, lib, kube, own}, frame.Frame{}, own, frame.Main, true},
		{"first of main", []frame.Frame{f("example.com/app/x.G"), own}, frame.Frame{}, f("example.com/app/x.G"), frame.Main, true},
		{"creator of main", []frame.Frame{std, lib}, own, own, frame.Main, true},
		{"library", []frame.Frame{std, kube, lib}, std, lib, frame.Library, true},
		{"creator of a library", []frame.Frame{std, kube}, lib, lib, frame.Library, true},
		{"a literal of client-go in main", []frame.Frame{inlined("/go/pkg/mod/k8s.io/client-go@v0.35.0/transport/t.go"), own}, frame.Frame{}, own, frame.Main, true},
		{"the same, trimmed", []frame.Frame{inlined("k8s.io/client-go@v0.35.0/transport/t.go"), own}, frame.Frame{}, own, frame.Main, true},
		{"installed from the cache of modules", []frame.Frame{inlined("/go/pkg/mod/example.com/app@v1.0.0/x.go"), lib}, frame.Frame{}, inlined("/go/pkg/mod/example.com/app@v1.0.0/x.go"), frame.Main, true},
		{"none", []frame.Frame{std, kube}, kube, frame.Frame{}, frame.Standard, false},
		{"empty", nil, frame.Frame{}, frame.Frame{}, frame.Standard, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, origin, ok := frame.Culprit(test.stack, test.creator, "example.com/app")
			if got != test.want || origin != test.origin || ok != test.ok {
				t.Errorf("got %v %v %v, want %v %v %v", got, origin, ok, test.want, test.origin, test.ok)
			}
		})
	}
}

func TestMainModule(t *testing.T) {
	if got := frame.MainModule(); got != "github.com/leakguard/leakguard" {
		t.Errorf("MainModule() = %q, want this module's path", got)
	}
}

func TestIsSpawner(t *testing.T) {
	for function, want := range map[string]bool{
		"sync.(*WaitGroup).Go":                                                           true,
		"sync.(*WaitGroup).Go.func1":                                                     true,
		"sync.(*WaitGroup).GoAll":                                                        false,
		"sync.(*WaitGroup).Wait":                                                         false,
		"golang.org/x/sync/errgroup.(*Group).Go.func1":                                   true,
		"k8s.io/apimachinery/pkg/util/wait.(*Group).Start.func1":                         true,
		"k8s.io/kubernetes/vendor/k8s.io/apimachinery/pkg/util/wait.(*Group).Start":      true,
		"k8s.io/client-go/tools/cache.(*controller).Run.(*Group).StartWithChannel.func2": true,
		"k8s.io/client-go/tools/cache.(*controller).Run":                                 false,
		"": false,
	} {
		if got := frame.IsSpawner(function); got != want {
			t.Errorf("IsSpawner(%q) = %v, want %v", function, got, want)
		}
	}
}

func TestRoot(t *testing.T) {
	stack := []frame.Frame{{Function: "sync.(*Cond).Wait"}, {Function: "example.com/app.run"}, {Function: "sync.(*WaitGroup).Go.func1"}, {Function: "runtime.goexit"}}
	if got := frame.Root(stack); got.Function != "example.com/app.run" {
		t.Errorf("Root = %v", got)
	}
	if got := frame.Root(stack[2:]); !got.IsZero() {
		t.Errorf("Root of helpers only = %v, want none", got)
	}
}
