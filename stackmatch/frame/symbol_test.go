package frame_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

func TestSplit(t *testing.T) {
	tests := []struct {
		function string
		want     frame.Symbol
	}{
		{"main.main", frame.Symbol{Package: "main", Name: "main"}},
		{"main.main.func1", frame.Symbol{Package: "main", Name: "main", Closure: "func1"}},
		{"example.com/app/controllers.(*Reconciler).Reconcile.func1.2", frame.Symbol{Package: "example.com/app/controllers", Receiver: "*Reconciler", Name: "Reconcile", Closure: "func1.2"}},
		{"example.com/app.Set.Len", frame.Symbol{Package: "example.com/app", Receiver: "Set", Name: "Len"}},
		{"example.com/app.Set.Len.func1", frame.Symbol{Package: "example.com/app", Receiver: "Set", Name: "Len", Closure: "func1"}},
		{"example.com/app.(*Queue[...]).Get", frame.Symbol{Package: "example.com/app", Receiver: "*Queue", Name: "Get"}},
		{"example.com/app.Map[...].func1", frame.Symbol{Package: "example.com/app", Name: "Map", Closure: "func1"}},
		{"example.com/app.Map[go.shape.struct { example.com/x.F int }]", frame.Symbol{Package: "example.com/app", Name: "Map"}},
		{"gopkg.in/yaml.v3.(*parser).peek", frame.Symbol{Package: "gopkg.in/yaml.v3", Receiver: "*parser", Name: "peek"}},
		{"gopkg.in/natefinch/lumberjack.v2.(*Logger).millRun", frame.Symbol{Package: "gopkg.in/natefinch/lumberjack.v2", Receiver: "*Logger", Name: "millRun"}},
		{"gopkg.in/yaml.v3.Unmarshal", frame.Symbol{Package: "gopkg.in/yaml.v3", Name: "Unmarshal"}},
		{"main.(*T).Do-fm", frame.Symbol{Package: "main", Receiver: "*T", Name: "Do"}},
		{"main.main.gowrap6", frame.Symbol{Package: "main", Name: "main", Closure: "gowrap6"}},
		{"main.main.deferwrap1", frame.Symbol{Package: "main", Name: "main", Closure: "deferwrap1"}},
		{"main.init.0", frame.Symbol{Package: "main", Name: "init", Closure: "0"}},
		{"main.init.0.func1", frame.Symbol{Package: "main", Name: "init", Closure: "0.func1"}},
		{"panic", frame.Symbol{Name: "panic"}},
		{"", frame.Symbol{}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, frame.Split(test.function)); diff != "" {
			t.Errorf("Split(%q) (-want +got):\n%s", test.function, diff)
		}
	}
}

func TestFrameText(t *testing.T) {
	tests := []struct {
		frame          frame.Frame
		text, position string
	}{
		{frame.Frame{}, "", ""},
		{frame.Frame{Function: "main.f"}, "main.f", ""},
		{frame.Frame{Function: "main.f", File: "/src/app/controllers/r.go", Line: 88}, "main.f at controllers/r.go:88", "controllers/r.go:88"},
		{frame.Frame{Function: "main.f", File: `C:\src\app\r.go`, Line: 8}, "main.f at app\\r.go:8", `app\r.go:8`},
		{frame.Frame{Function: "main.f", File: "r.go", Line: 8}, "main.f at r.go:8", "r.go:8"},
	}
	for _, test := range tests {
		if got := test.frame.String(); got != test.text {
			t.Errorf("String() = %q, want %q", got, test.text)
		}
		if got := test.frame.Position(); got != test.position {
			t.Errorf("Position() = %q, want %q", got, test.position)
		}
	}
}

// FuzzSplit checks that a name is only ever taken apart, and that its package is a prefix of it.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"main.main", "a/b.(*T[...]).M.func1-fm", "a.b/c.d.(", "[", "(*", "a/b(c/d).e", "..", "a.%2e"} {
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, function, main string) {
		s := frame.Split(function)
		if !strings.HasPrefix(strings.TrimSuffix(function, "-fm"), s.Package) && !strings.Contains(function, "[") {
			t.Errorf("package %q of %q", s.Package, function)
		}
		if n := len(s.Package) + len(s.Receiver) + len(s.Name) + len(s.Closure); n > len(function) {
			t.Errorf("%+v is longer than %q", s, function)
		}
		frame.OriginOf(function, main)
		frame.IsSpawner(function)
	})
}
