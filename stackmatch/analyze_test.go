package stackmatch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/stackmatch"
)

// pile writes n goroutines with one stack; ids begin at id and the waits are spread evenly down from the oldest minutes.
func pile(n, id int, reason string, oldest int, stack string) string {
	var b strings.Builder
	for i := range n {
		wait := ""
		if m := oldest - i*oldest/max(n, 1); m > 0 {
			wait = fmt.Sprintf(", %d minutes", m)
		}
		fmt.Fprintf(&b, "goroutine %d [%s%s]:\n%s\n\n", id+i, reason, wait, stack)
	}
	return b.String()
}

// call writes one frame.
func call(function, file string, line int) string {
	return fmt.Sprintf("%s(0x1)\n\t%s:%d +0x1d\n", function, file, line)
}

const mainGoroutine = "goroutine 1 [select, 900 minutes]:\nmain.main()\n\t/workspace/cmd/main.go:40 +0x1d\n\n"

func readText(t *testing.T, text string) *stackmatch.Dump {
	t.Helper()
	d, err := stackmatch.Read(strings.NewReader(mainGoroutine+text), stackmatch.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAnalyzeGrowth(t *testing.T) {
	worker := call("example.com/op/internal/worker.(*Pool).run.func1", "/workspace/internal/worker/pool.go", 33) +
		"created by example.com/op/internal/worker.(*Pool).run in goroutine 1\n\t/workspace/internal/worker/pool.go:31 +0x9f"
	waiting := func(n, id, oldest int) string { return pile(n, id, "chan receive", oldest, worker) }
	running := func(n, id int) string { return pile(n, id, "select", 0, worker) }
	tests := []struct {
		name    string
		dumps   []string
		objects []int
		want    stackmatch.Verdict
		rule    string
		count   int64
	}{
		{"few of one place, once", []string{waiting(6, 100, 300)}, nil, stackmatch.VerdictBenign, "", 0},
		{"many of one place, once", []string{running(150, 100)}, nil, stackmatch.VerdictSuspect, "GOR-606", 150},
		{"many and as many later", []string{running(150, 100), running(148, 5000)}, nil, stackmatch.VerdictBenign, "GOR-606", 148},
		{"a staircase of parked ones", []string{waiting(6, 100, 300), waiting(6, 100, 400), waiting(10, 100, 500)}, nil, stackmatch.VerdictLeak, "GOR-001", 4},
		{"growth of running ones", []string{running(40, 100), running(100, 100)}, nil, stackmatch.VerdictSuspect, "GOR-604", 60},
		{"growth that follows objects", []string{running(40, 100), running(100, 100)}, []int{40, 100}, stackmatch.VerdictBenign, "GOR-604", 60},
		{"growth beyond objects", []string{running(40, 100), running(100, 100)}, []int{40, 42}, stackmatch.VerdictLeak, "GOR-604", 58},
		{"a burst that has ended", []string{running(40, 100), running(500, 100), running(41, 100)}, nil, stackmatch.VerdictBenign, "", 0},
		{"one creator that is gone", []string{strings.ReplaceAll(waiting(20, 100, 300), "in goroutine 1\n", "in goroutine 9999\n")}, nil, stackmatch.VerdictSuspect, "GOR-605", 20},
		{"warm-up to a plateau", []string{"", waiting(60, 100, 30), waiting(60, 100, 60)}, nil, stackmatch.VerdictSuspect, "GOR-604", 60},
		{"one per object", []string{running(150, 100)}, []int{75}, stackmatch.VerdictBenign, "GOR-606", 150},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var dumps []*stackmatch.Dump
			for _, text := range tt.dumps {
				dumps = append(dumps, readText(t, text))
			}
			a, err := stackmatch.Analyze(dumps, stackmatch.Options{Objects: tt.objects})
			if err != nil {
				t.Fatal(err)
			}
			if a.Verdict != tt.want {
				t.Errorf("verdict: got %s, want %s; findings %+v", a.Verdict, tt.want, a.Findings)
			}
			if tt.rule == "" {
				if len(a.Findings) != 0 {
					t.Errorf("findings: got %+v, want none", a.Findings)
				}
				return
			}
			if len(a.Findings) != 1 || a.Findings[0].Rule != tt.rule || a.Findings[0].Count != tt.count {
				t.Errorf("findings: got %+v, want one of %s with count %d", a.Findings, tt.rule, tt.count)
			}
		})
	}
}

func TestAnalyzePerHour(t *testing.T) {
	stack := call("example.com/op/internal/worker.(*Pool).send", "/workspace/internal/worker/pool.go", 33) +
		"created by example.com/op/internal/worker.(*Pool).run in goroutine 7\n\t/workspace/internal/worker/pool.go:31 +0x9f"
	first, second := readText(t, pile(10, 100, "chan send", 60, stack)), readText(t, pile(40, 100, "chan send", 90, stack))
	start := time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)
	a, err := stackmatch.Analyze([]*stackmatch.Dump{first, second}, stackmatch.Options{Times: []time.Time{start, start.Add(30 * time.Minute)}})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Findings) != 1 {
		t.Fatalf("findings: got %+v, want one", a.Findings)
	}
	f := a.Findings[0]
	if f.PerHour != 60 {
		t.Errorf("per hour: got %v, want 60 (30 more in half an hour)", f.PerHour)
	}
	if !f.FirstSeen.Equal(start) || !f.LastSeen.Equal(start.Add(30*time.Minute)) {
		t.Errorf("seen: got %v to %v, want the times of the dumps", f.FirstSeen, f.LastSeen)
	}
}

func TestAnalyzeOptionErrors(t *testing.T) {
	d := readText(t, "")
	now := time.Now()
	tests := []struct {
		name  string
		o     stackmatch.Options
		field string
	}{
		{"too many objects", stackmatch.Options{Objects: []int{1, 2}}, "Objects"},
		{"negative objects", stackmatch.Options{Objects: []int{-1}}, "Objects"},
		{"too many times", stackmatch.Options{Times: []time.Time{now, now}}, "Times"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := stackmatch.Analyze([]*stackmatch.Dump{d}, tt.o)
			var oe *stackmatch.OptionError
			if !errors.As(err, &oe) || oe.Field != tt.field {
				t.Errorf("got %v, want an OptionError of %s", err, tt.field)
			}
		})
	}
	if _, err := stackmatch.Analyze([]*stackmatch.Dump{d, d}, stackmatch.Options{Times: []time.Time{now, now.Add(-1)}}); err == nil {
		t.Error("times out of order: got no error")
	}
	a, err := stackmatch.Analyze(nil, stackmatch.Options{})
	if err != nil || a.Verdict != stackmatch.VerdictBenign || a.Findings == nil || a.Errors == nil {
		t.Errorf("no dumps: got %+v, %v, want a benign analysis with empty lists", a, err)
	}
}

func TestGuessMain(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"workspace", call("example.com/op/internal/worker.Run", "/workspace/internal/worker/run.go", 3), "example.com/op"},
		{"GOPATH", call("github.com/acme/op/pkg/worker.Run", "/go/src/github.com/acme/op/pkg/worker/run.go", 3), "github.com/acme/op"},
		{"major version", call("github.com/acme/op/v3/controller.Run", "/go/src/github.com/acme/op/controller/run.go", 3), "github.com/acme/op/v3"},
		{"-trimpath", call("example.com/op/run.Run", "example.com/op/run/run.go", 3), "example.com/op"},
		{"dependency with -trimpath", call("example.com/dep/run.Run", "example.com/dep@v1.2.0/run/run.go", 3), ""},
		{"dependency", call("example.com/dep/run.Run", "/go/pkg/mod/example.com/dep@v1.2.0/run/run.go", 3), ""},
		{"vendored", call("example.com/dep/run.Run", "/workspace/vendor/example.com/dep/run/run.go", 3), ""},
		{"Windows", call("example.com/op/run.Run", `C:\Users\me\op\run\run.go`, 3), "example.com/op"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := readText(t, "goroutine 5 [select]:\n"+tt.text)
			if got := stackmatch.GuessMain(d); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAnalyzeIsRepeatable(t *testing.T) {
	d := readText(t, pile(30, 50, "chan send", 60, call("example.com/op/a.F", "/workspace/a/a.go", 3))+
		pile(30, 500, "chan send", 60, call("example.com/op/b.F", "/workspace/b/b.go", 3)))
	first, err := stackmatch.Analyze([]*stackmatch.Dump{d}, stackmatch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Findings) != 2 {
		t.Fatalf("findings: got %d, want 2", len(first.Findings))
	}
	for range 5 {
		again, err := stackmatch.Analyze([]*stackmatch.Dump{d}, stackmatch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("another analysis differs (-first +again):\n%s", diff)
		}
	}
}
