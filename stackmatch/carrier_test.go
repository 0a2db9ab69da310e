package stackmatch_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leakguard/leakguard/stackmatch"
)

const carried = `goroutine 5 [running]:
main.a(0x1, {0x2, 0x3})
	/src/a.go:1 +0x1

goroutine 1 [select, 5 minutes] {"k-\"1\"": "v"}:
main.(*T).b(...)
	/src/with space/b.go:2
created by main.c in goroutine 5
	/src/c.go:3 +0x2

goroutine 8 [chan receive (nil chan)]:
main.d(0x1)
	/src/d.go:4 +0x2
`

func quoted(tb testing.TB, s string) string {
	tb.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// eachLine puts the lines of a dump through format, with a number that grows.
func eachLine(dump string, format func(n int, line string) string) string {
	var b strings.Builder
	for n, line := range strings.Split(strings.TrimSuffix(dump, "\n"), "\n") {
		b.WriteString(format(n, line) + "\n")
	}
	return b.String()
}

// TestCarriers finds one dump in everything that dumps are found in.
func TestCarriers(t *testing.T) {
	inner := `{"stacks":` + quoted(t, carried) + `}`
	tests := []struct{ name, input string }{
		{"plain", carried},
		{"text around", "starting up\npanic: boom\n\n" + carried + "exit status 2\nFAIL\texample.com/app\t600.021s\n"},
		{"JSON string", `{"level":"warn","msg":"dump","stacks":` + quoted(t, carried) + `,"n":1}` + "\n"},
		{"JSON log around", `{"level":"info","msg":"hello (world)"}` + "\n" + `{"stacks":` + quoted(t, carried) + "}\n" + `{"level":"info","msg":"main.x()"}` + "\n"},
		{"JSON in JSON", `{"log":` + quoted(t, inner) + "}\n"},
		{"JSON in JSON in JSON", `{"log":` + quoted(t, `{"log":`+quoted(t, inner)+"}") + "}\n"},
		{"logfmt", "level=warn msg=" + strconv.Quote(carried) + " n=1\n"},
		{"klog", "I0101 10:00:00.000000       1 main.go:12] dump: " + carried},
		{"kubectl logs --prefix", eachLine(carried, func(_ int, l string) string { return "[pod/app-1/manager] " + l })},
		{"kubectl logs --prefix, trimmed", eachLine(carried, func(_ int, l string) string { return strings.TrimRight("[pod/app-1/manager] "+l, " ") })},
		{"CRI", eachLine(carried, func(n int, l string) string {
			return fmt.Sprintf("2026-01-02T03:04:%02d.%dZ stderr F %s", n, 5+n*n*977, l)
		})},
		{"docker compose", eachLine(carried, func(_ int, l string) string { return "app_1  | " + l })},
		{"docker json-file", eachLine(carried, func(n int, l string) string {
			return fmt.Sprintf(`{"log":%s,"stream":"stderr","time":"2026-01-02T03:04:05.%dZ"}`, quoted(t, l+"\n"), n*13)
		})},
		{"JSON lines without line breaks", eachLine(carried, func(n int, l string) string { return fmt.Sprintf(`{"ts":%d,"msg":%s}`, 1700000+n, quoted(t, l)) })},
		{"go test -json", eachLine(carried, func(n int, l string) string {
			return fmt.Sprintf(`{"Time":"2026-01-02T03:04:05.%dZ","Action":"output","Package":"x","Output":%s}`, n*77, quoted(t, l+"\n"))
		})},
		{"other lines between", eachLine(carried, func(n int, l string) string {
			s := "app-1 " + l
			if n == 2 || n == 6 {
				s += "\napp-2 something else (happened)"
			}
			return s
		})},
		{"go test", "=== RUN   TestX\n    x_test.go:12: " + strings.ReplaceAll(carried, "\n", "\n        ") + "\n--- FAIL: TestX (0.00s)\n"},
		{"CRLF", strings.ReplaceAll(carried, "\n", "\r\n")},
		{"CRLF in JSON", `{"stacks":` + quoted(t, strings.ReplaceAll(carried, "\n", "\r\n")) + "}\n"},
		{"long lines before", strings.Repeat("x", 3<<20) + "\n" + carried},
		{"a long JSON line", `{"before":"` + strings.Repeat("x", 3<<20) + `","stacks":` + quoted(t, carried) + `,"after":"` + strings.Repeat("y", 3<<20) + "\"}\n"},
		{"byte order mark", "\ufeff" + carried},
	}
	want := read(t, carried).Goroutines
	if len(want) != 3 {
		t.Fatalf("%d goroutines, want 3", len(want))
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := read(t, test.input)
			if diff := cmp.Diff(want, d.Goroutines, cmpopts.IgnoreFields(stackmatch.Goroutine{}, "Line")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(d.Errors) > 0 || d.Truncated {
				t.Errorf("errors %v, truncated %v", d.Errors, d.Truncated)
			}
		})
	}
}

// TestCarriedCounts finds debug=1 text in logs.
func TestCarriedCounts(t *testing.T) {
	counts := "goroutine profile: total 3\n2 @ 0x1 0x2 0x3\n# labels: {\"k\":\"v\"}\n#\t0x2\tmain.c+0x1\t/src/c.go:3\n\n1 @ 0x4 0x5\n#\t0x4\tmain.d+0x1\t\t/src/d.go:4\n\n"
	want := read(t, counts).GroupBy("")
	for name, input := range map[string]string{
		"JSON string": `{"level":"warn","goroutines":` + quoted(t, counts) + "}\n",
		"prefix":      eachLine(counts, func(_ int, l string) string { return "[pod/a] " + l }),
		"CRLF":        strings.ReplaceAll(counts, "\n", "\r\n"),
		"log line":    "2026/01/02 dump: " + counts,
	} {
		t.Run(name, func(t *testing.T) {
			d := read(t, input)
			if diff := cmp.Diff(want, d.GroupBy("")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if d.Announced != 3 || d.Total != 3 || d.Truncated || len(d.Errors) > 0 {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestCarrierLines checks that line numbers are those of the input, not of the dump in it.
func TestCarrierLines(t *testing.T) {
	d := read(t, "a\nb\n"+eachLine(carried, func(_ int, l string) string { return "app: " + l }))
	var got []int
	for _, g := range d.Goroutines {
		got = append(got, g.Line)
	}
	if diff := cmp.Diff([]int{3, 7, 13}, got); diff != "" || d.Line != 3 {
		t.Errorf("lines of goroutines (-want +got):\n%s\nline of the dump %d, want 3", diff, d.Line)
	}
}
