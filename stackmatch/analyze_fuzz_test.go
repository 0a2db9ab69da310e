package stackmatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
)

// FuzzAnalyze analyses whatever can be read of any text, alone and as the later of two dumps: no panic, and an analysis that
// holds together.
func FuzzAnalyze(f *testing.F) {
	fixtures, err := filepath.Glob(rulesDir + "/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range fixtures {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	set := newRuleSet(f, stackmatch.Builtin()...)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := stackmatch.Read(strings.NewReader(text), stackmatch.ReadOptions{})
		if d == nil || err != nil {
			return
		}
		half, _ := stackmatch.Read(strings.NewReader(text[:len(text)/2]), stackmatch.ReadOptions{}) // nil is left out
		for _, dumps := range [][]*stackmatch.Dump{{d}, {half, d}, {d, half, d}} {
			a, err := stackmatch.Analyze(dumps, stackmatch.Options{Rules: set})
			if err != nil {
				t.Fatal(err)
			}
			checkAnalysis(t, a)
			stackmatch.Changes(dumps, "")
		}
	})
}

// checkAnalysis checks what every analysis must keep.
func checkAnalysis(t *testing.T, a stackmatch.Analysis) {
	t.Helper()
	worst := stackmatch.VerdictBenign
	for i, f := range a.Findings {
		if !f.Verdict.Valid() || !f.Severity.Valid() || f.Category == "" || f.Rule == "" || f.Reason == "" || f.Advice == "" {
			t.Errorf("finding %d is incomplete: %+v", i, f)
		}
		if f.Count < 0 || f.PerHour < 0 || len(f.Stacks) > 3 {
			t.Errorf("finding %d has numbers that cannot be: %+v", i, f)
		}
		if f.Verdict.Worse(worst) {
			worst = f.Verdict
		}
		if i > 0 && f.Verdict.Worse(a.Findings[i-1].Verdict) {
			t.Errorf("finding %d is worse than the one before it", i)
		}
	}
	if a.Verdict != worst {
		t.Errorf("verdict: got %s, want that of the worst finding, %s", a.Verdict, worst)
	}
}

// TestMatchConcurrently lets goroutines share a set and a context; the race detector is the judge.
func TestMatchConcurrently(t *testing.T) {
	d, err := stackmatch.ReadFile("testdata/corpus/C14-argocd-lock-semaphore.debug2.txt.gz", stackmatch.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	groups := d.GroupBy("")
	set := newRuleSet(t, stackmatch.Builtin()...)
	in := stackmatch.NewContext(groups, stackmatch.ContextOptions{Goroutines: d.Goroutines})
	ids := func() string {
		var b strings.Builder
		for i := range groups {
			if rule, ok := set.Match(&groups[i], in); ok {
				fmt.Fprintln(&b, i, rule.ID)
			}
		}
		return b.String()
	}
	want := ids()
	if !strings.Contains(want, "GOR-101") {
		t.Fatalf("got %q, want the deadlock", want)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := ids(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	wg.Wait()
}

// TestMatchCheapProfile matches the groups of a profile, which have neither ids nor creators nor minutes.
func TestMatchCheapProfile(t *testing.T) {
	d, err := stackmatch.ReadFile("testdata/corpus/C27-caddy-otel-bsp.debug1.txt.gz", stackmatch.ReadOptions{GroupsOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	groups := d.GroupBy("")
	in := stackmatch.NewContext(groups, stackmatch.ContextOptions{})
	set := newRuleSet(t, stackmatch.Builtin()...)
	for i := range groups {
		rule, ok := set.Match(&groups[i], in)
		if ok && rule.ID == "GOR-403" {
			if got := rule.VerdictFor(groups[i].Count, false); got != stackmatch.VerdictLeak {
				t.Errorf("verdict: got %s, want leak", got)
			}
			return
		}
	}
	t.Error("no group matches GOR-403")
}

// distinctStacks writes a dump of n goroutines each that wait for locks, conditions and polls, all with stacks of their own.
func distinctStacks(n int) string {
	var b strings.Builder
	for i := range n {
		for _, wait := range []struct{ reason, function string }{
			{"sync.Mutex.Lock", "sync.(*Mutex).Lock"},
			{"sync.Cond.Wait", "sync.(*Cond).Wait"},
			{"select", "k8s.io/apimachinery/pkg/util/wait.PollUntil"},
			{"sync.WaitGroup.Wait", "sync.(*WaitGroup).Wait"},
			{"chan send", "example.com/a/b.(*Q).push"},
		} {
			fmt.Fprintf(&b, "goroutine %d [%s, 5 minutes]:\n%s(0x1)\n\t/w/w.go:1 +0x1\n", b.Len()+10, wait.reason, wait.function)
			fmt.Fprintf(&b, "example.com/a/b%d.(*T%d).F%d(0x1)\n\t/w/x.go:%d +0x1\nexample.com/a/c.(*T).G%d(0x1)\n\t/w/x.go:3 +0x1\n\n", i%50, i%7, i, i, i)
		}
	}
	return b.String()
}

// TestAnalyzeManyStacks is a hostile dump, in which nothing can be grouped: looking for the holder of each lock must not
// compare everything with everything, which would take minutes here.
func TestAnalyzeManyStacks(t *testing.T) {
	d := readText(t, distinctStacks(2000))
	a, err := stackmatch.Analyze([]*stackmatch.Dump{d, d}, stackmatch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkAnalysis(t, a)
	if a.Verdict != stackmatch.VerdictLeak || a.Goroutines != 10001 {
		t.Errorf("got %s of %d goroutines, want leak of 10001", a.Verdict, a.Goroutines)
	}
}

// BenchmarkAnalyze shows that the cost grows with the number of distinct stacks, not with its square.
func BenchmarkAnalyze(b *testing.B) {
	for _, n := range []int{100, 1000} {
		d, err := stackmatch.Read(strings.NewReader(distinctStacks(n)), stackmatch.ReadOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("stacks=%d", 5*n), func(b *testing.B) {
			for b.Loop() {
				if _, err := stackmatch.Analyze([]*stackmatch.Dump{d}, stackmatch.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
