package rulefile_test

import (
	"os"
	"testing"

	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

// BenchmarkCondition measures one evaluation of conditions of several kinds, with the cost limit and the deadline.
func BenchmarkCondition(b *testing.B) {
	g := worker()
	for len(g.Stack) < 20 {
		g.Stack = append(g.Stack, g.Stack[1])
	}
	for _, bc := range []struct{ name, when string }{
		{"count", `group.count == 12`},
		{"early-out", `group.count > 100 && group.frames.exists(f, f.startsWith("net/http."))`},
		{"labels", `group.wait > duration("10m") && group.labels["tenant"] == "blue"`},
		{"frames", `group.frames.exists(f, f.startsWith("net/http.")) || group.count == 12`},
		{"regexp", `group.frames.exists(f, f.matches("^net/http\\.")) || group.count == 12`},
	} {
		b.Run(bc.name, func(b *testing.B) {
			set := parseWith(b, withCondition(bc.when), rulefile.Options{})
			b.ReportAllocs()
			for b.Loop() {
				set.Match(g, nil)
			}
		})
	}
}

// BenchmarkParse measures reading a file with two conditions.
func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rulefile.Parse("full.yaml", data); err != nil {
			b.Fatal(err)
		}
	}
}
