package traps_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/examples/traps"
)

// go test ./examples/traps -run TestReadme -update writes README.md anew.
var update = flag.Bool("update", false, "write README.md from the registry")

const intro = `# The traps

Leaks that operators are known to have, each beside a clean twin that does the same work, and things that look like a leak
and are none. ` + "`go run ./examples/operator --leak=NAME [--twin] --expect=each`" + ` runs any of them in a
real operator and says what leakguard finds; several names with commas between them run in one operator.

The row is that of the table of traps; a letter after it is the variant. Expected is what leakguard should say: alarm (a firing
finding), listed (a finding that does not alarm), notice (a remark) or silent. Evidence is the rule that carries the finding;
where leakguard does something else today, it says what.
`

const tableHead = `
This file is written from the registry and results.json: ` + "`go test ./examples/traps -run TestReadme -update`" + `.

| Trap | Row | Truth | Grows | Expected | Evidence | Found | Leaks | Counted | goleak | goroutineleak | What happens |
|---|---|---|---|---|---|---|---|---|---|---|---|
`

const claimsIntro = `
## What is said and is not so

Rows that cannot run in an operator: ways to find leaks that do not find them, mends that make it worse, and code that does
not compile. ` + "`go test ./examples/traps -run TEST`" + ` shows each.

| Row | What is said | What is so | Test |
|---|---|---|---|
`

const load = `
## Under load

A thousand events a second, handled by ` + "`go handler()`" + ` and by a workqueue of sixteen workers, with a call behind them that takes
sixteen at a time: ` + "`go test ./examples/traps -run '^$' -bench Load -benchtime 5s`" + ` prints the mean latency, the one of the slowest
event in a hundred, and how many goroutines there were at once: 880 ms, 1717 ms and 1355 against 85 ms, 150 ms and 16 on two
busy cores. A queue holds each object once, however many events it has.
`

func readme(r *results) string {
	var b strings.Builder
	b.WriteString(intro + r.intro() + tableHead)
	for _, t := range traps.All() {
		title := strings.TrimPrefix(t.Title, "no leak: ")
		cells := slices.Concat(
			[]string{"`" + t.Name + "`", orDash(t.Row), truth(&t), orDash(string(t.Grows)), string(t.Expect), evidence(&t)},
			r.columns(&t), []string{strings.ReplaceAll(title, "|", `\|`)},
		)
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	b.WriteString(claimsIntro)
	for _, c := range claims() {
		b.WriteString("| " + c.row + " | " + strings.ReplaceAll(c.claim, "|", `\|`) + " | " + strings.ReplaceAll(c.truth, "|", `\|`) + " | " + c.testName() + " |\n")
	}
	b.WriteString(load)
	return b.String()
}

func truth(t *traps.Trap) string {
	switch {
	case t.Expect == traps.ExpectSilent:
		return "no leak"
	case t.Expect == traps.ExpectNotice && t.Grows == "":
		return "bad setting"
	case t.Expect == traps.ExpectNotice:
		return "ends by itself"
	}
	return "leak"
}

func evidence(t *traps.Trap) string {
	if t.Gap != "" {
		return "**gap**: " + t.Gap
	}
	return orDash(strings.Join(t.Evidence(), " or "))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func TestReadme(t *testing.T) {
	t.Parallel()
	results := readResults(t)
	if *update {
		if err := os.WriteFile("README.md", []byte(readme(results)), 0o644); err != nil { //nolint:gosec // it is there to be read
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(readme(results), strings.ReplaceAll(string(have), "\r\n", "\n")); diff != "" {
		t.Errorf("README.md is stale; -update writes it anew:\n%s", diff)
	}
}
