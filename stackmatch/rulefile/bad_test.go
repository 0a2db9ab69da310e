package rulefile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

// head is the beginning of a file whose rule is right up to there; its last line is line 9.
const head = `schema: 1
rules:
  - id: APP-1
    title: t
    severity: info
    categories: [c]
    doc: d
    advice: a
    verdict: suspect
`

// silent is the beginning of a file whose suppression is right up to there; its last line is line 6.
const silent = `schema: 1
suppressions:
  - rule: GOR-505
    owner: team
    reason: known
    expires: 2027-01-31
`

// TestBadFiles checks what is said of wrong files: every problem, with the line, the rule and the field.
func TestBadFiles(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"empty", "", "r.yaml:1: the file is empty: to have no rules, write schema: 1"},
		{"comment only", "# nothing\n", "r.yaml:1: the file is empty: to have no rules, write schema: 1"},
		{"text", "hello\n", `r.yaml:1: must be a mapping, is the text "hello"`},
		{"list", "- a\n", "r.yaml:1: must be a mapping, is a list"},
		{"no YAML", "schema: 1\nrules: [\n", "r.yaml:2: is no YAML: did not find expected node content"},
		{"tab", "schema: 1\nrules:\n\t- id: a\n", "r.yaml:3: is no YAML: found character that cannot start any token"},
		{"binary", "\x00\x01\x02", "r.yaml:1: is no YAML: control characters are not allowed"},
		{"two documents", "schema: 1\n---\nschema: 1\n", "r.yaml:2: the file has a second document: one file is one rule set"},
		{"no schema", "rules: []\n", "r.yaml:1: schema: must be 1, the version of the form of this file"},
		{"new schema", "schema: 2\n", "r.yaml:1: schema: must be 1, the version of the form of this file"},
		{"schema as text", "schema: one\n", `r.yaml:1: schema: must be a whole number, is the text "one"`},
		{"unknown field", "schema: 1\nrule: []\n", `r.yaml:2: unknown field "rule"; did you mean "rules"?`},
		{"unknown field, nothing near", "schema: 1\nfoo: []\n", `r.yaml:2: unknown field "foo"`},
		{"twice", "schema: 1\nowner: a\nowner: b\n", `r.yaml:3: the field "owner" stands there twice: also on line 2`},
		{"version as number", "schema: 1\nversion: 1.20\n", "r.yaml:2: version: must be text, is the number 1.20; put it in quotes"},
		{"builtin as text", "schema: 1\nbuiltin: 'no'\n", `r.yaml:2: builtin: must be true or false, is the text "no"`},
		{"off as text", "schema: 1\ndisabled: GOR-501\n", `r.yaml:2: disabled: must be a list, is the text "GOR-501"; write [value] or - value`},
		{"off unknown", "schema: 1\ndisabled:\n  - GOR-501\n  - GOR-5O2\n", `r.yaml:4: disabled[1]: no rule has the id "GOR-5O2"; did you mean "GOR-502"?`},
		{"empty entry", "schema: 1\ndisabled:\n  -\n", "r.yaml:3: disabled[0]: is empty"},
		{"rule as text", "schema: 1\nrules: [GOR-501]\n", `r.yaml:2: rule 1: must be a mapping, is the text "GOR-501"`},
		{"rule without all", "schema: 1\nrules:\n  - id: APP-1\n", strings.Join([]string{
			"r.yaml:3: rule APP-1: title: is empty: a rule must say what it means",
			"r.yaml:3: rule APP-1: doc: is empty: a rule must say what it means",
			"r.yaml:3: rule APP-1: advice: is empty: a rule must say what it means",
			"r.yaml:3: rule APP-1: categories: is empty",
			`r.yaml:3: rule APP-1: severity: "" is none of info, warning, critical`,
			`r.yaml:3: rule APP-1: verdict: "" is none of benign, suspect, leak`,
			"r.yaml:3: rule APP-1: match: is empty: it would match every group",
		}, "\n")},
		{"no id", "schema: 1\nrules:\n  - title: x\n    doc: d\n    advice: a\n    severity: info\n    verdict: leak\n    categories: [c]\n    match: {minWait: 5m}\n", "r.yaml:3: rule 1: id: is empty"},
		{"id with a space", strings.Replace(head, "APP-1", "APP 1", 1) + "    match: {minWait: 5m}\n", `r.yaml:3: rule APP 1: id: "APP 1" has a space`},
		{"no built-in", strings.Replace(head, "APP-1", "GOR-551", 1) + "    match: {minWait: 5m}\n", `r.yaml:3: rule GOR-551: id: begins as those of the built-in rules do, and no built-in rule has it; did you mean "GOR-501"?`},
		{"id twice", head + "    match: {minWait: 5m}\n  - {id: APP-1, title: t, severity: info, categories: [c], doc: d, advice: a, verdict: leak, match: {minWait: 5m}}\n", "r.yaml:11: rule APP-1: id: is used twice: also on line 3"},
		{"field of a rule", head + "    match: {minWait: 5m}\n    advise: x\n", `r.yaml:11: rule APP-1: unknown field "advise"; did you mean "advice"?`},
		{"field of match", head + "    match:\n      minwait: 5m\n", `r.yaml:11: rule APP-1: match: unknown field "minwait"; did you mean "minWait"?`},
		{"field of match outside", head + "    minCount: 3\n    match: {minWait: 1m}\n", `r.yaml:10: rule APP-1: unknown field "minCount"; it belongs into match`},
		{"when inside match", head + "    match:\n      when: true\n", `r.yaml:11: rule APP-1: match: unknown field "when"; a condition stands beside match, not in it`},
		{"severity", strings.Replace(head, "info", "warn", 1) + "    match: {minWait: 5m}\n", `r.yaml:5: rule APP-1: severity: "warn" is none of info, warning, critical`},
		{"verdict", strings.Replace(head, "suspect", "suspekt", 1) + "    match: {minWait: 5m}\n", `r.yaml:9: rule APP-1: verdict: "suspekt" is none of benign, suspect, leak; did you mean "suspect"?`},
		{"growing milder", head + "    growing: benign\n    match: {minWait: 5m}\n", `r.yaml:10: rule APP-1: growing: "benign" is milder than verdict "suspect"`},
		{"pattern as text", head + "    match:\n      frames: [main.f]\n", `r.yaml:11: rule APP-1: match.frames[0]: must be a mapping, is the text "main.f"`},
		{"regexp", head + "    match:\n      frames:\n        - prefix: a\n        - regexp: '(a'\n", "r.yaml:13: rule APP-1: match.frames[1].regexp: error parsing regexp: missing closing ): `(a`"},
		{"two patterns", head + "    match:\n      leaf: {exact: a, prefix: b}\n", "r.yaml:11: rule APP-1: match.leaf: sets more than one of exact, prefix, regexp"},
		{"no pattern", head + "    match:\n      without:\n        - {}\n      minWait: 5m\n", "r.yaml:12: rule APP-1: match.without[0]: is empty: one of exact, prefix, regexp must be set"},
		{"minutes as number", head + "    match: {minWait: 5}\n", "r.yaml:10: rule APP-1: match.minWait: must be a duration such as 10m or 1h30m, is the number 5"},
		{"negative wait", head + "    match: {minWait: -5m}\n", "r.yaml:10: rule APP-1: match.minWait: -5m0s is negative"},
		{"counts", head + "    match:\n      minCount: 9\n      maxCount: 3\n      minWait: 1m\n", "r.yaml:11: rule APP-1: match.minCount: 9 is above maxCount 3: no group can have both"},
		{"count as text", head + "    match: {minCount: many}\n", `r.yaml:10: rule APP-1: match.minCount: must be a whole number, is the text "many"`},
		{"count too large", head + "    match: {minCount: 99999999999999999999}\n", "r.yaml:10: rule APP-1: match.minCount: must be a whole number, is the number 99999999999999999999"},
		{"label twice", head + "    match:\n      labels: {a: x, a: y}\n", `r.yaml:11: rule APP-1: match.labels: the field "a" stands there twice: also on line 11`},
		{"label as number", head + "    match:\n      labels: {a: 1}\n", "r.yaml:11: rule APP-1: match.labels.a: must be text, is the number 1; put it in quotes"},
		{"merge key", head + "    match: &m {minWait: 1m}\n    companions:\n      - <<: *m\n", "r.yaml:12: rule APP-1: companions[0]: merge keys (<<) are not supported; an alias for a whole value is"},
		{"owner missing", strings.Replace(silent, "owner: team", "owner: ''", 1), "r.yaml:4: suppressions[0].owner: is missing: somebody must answer for a suppression"},
		{"reason missing", strings.Replace(silent, "    reason: known\n", "", 1), "r.yaml:3: suppressions[0].reason: is missing: say why the finding is all right for now"},
		{"expiry missing", strings.Replace(silent, "    expires: 2027-01-31\n", "", 1), "r.yaml:3: suppressions[0].expires: is missing: a suppression is for a while, not for ever"},
		{"expiry wrong", strings.Replace(silent, "2027-01-31", "2027-02-31", 1), `r.yaml:6: suppressions[0].expires: must be a day such as 2027-01-31 or a time such as 2027-01-31T12:00:00Z, is the text "2027-02-31"`},
		{"selects all", strings.Replace(silent, "rule: GOR-505", "rule: ''", 1), "r.yaml:3: suppressions[0]: selects every finding: give rule, category, controller, culprit or fingerprint"},
		{"suppressed rule", strings.Replace(silent, "GOR-505", "GOR-5055", 1), `r.yaml:3: suppressions[0].rule: no built-in rule has the id "GOR-5055"; did you mean "GOR-505"?`},
		{"suppressed culprit", silent + "    culprit: {regexp: '['}\n", "r.yaml:7: suppressions[0].culprit.regexp: error parsing regexp: missing closing ]: `[`"},
		{"suppressed culprits", silent + "    culprit: {exact: a, prefix: a}\n", "r.yaml:7: suppressions[0].culprit: sets more than one of exact, prefix, regexp"},
		{"suppression's field", silent + "    expiry: x\n", `r.yaml:7: suppressions[0]: unknown field "expiry"; did you mean "expires"?`},
	} {
		t.Run(tc.name, func(t *testing.T) { wantError(t, tc.text, tc.want) })
	}
}

// TestBadConditions is TestBadFiles for conditions.
func TestBadConditions(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"empty", head + "    when: ''\n", "r.yaml:10: rule APP-1: when: is empty"},
		{"not text", head + "    when: true\n", "r.yaml:10: rule APP-1: when: must be text, is the truth value true; put it in quotes"},
		{"field", head + "    when: group.cuont > 3\n", `r.yaml:10: rule APP-1: when: at column 6: a group has no field "cuont"; did you mean "count"?`},
		{"field on a later line", head + "    when: |\n      group.count > 3 &&\n      group.slopePerMinut > 1\n", `r.yaml:12: rule APP-1: when: at column 6: a group has no field "slopePerMinut"; did you mean "slopePerMinute"?`},
		{"folded", head + "    when: >\n      group.count > 3 &&\n      group.x > 1\n", `r.yaml:10: rule APP-1: when: at column 25: a group has no field "x"`},
		{"type", head + "    when: group.count > \"3\"\n", "r.yaml:10: rule APP-1: when: at column 13: found no matching overload for '_>_' applied to '(int, string)'"},
		{"no bool", head + "    when: group.count + 1\n", "r.yaml:10: rule APP-1: when: must say true or false, gives int"},
		{"variable", head + "    when: g.count > 1\n", "r.yaml:10: rule APP-1: when: at column 1: undeclared reference to 'g' (in container '')"},
		{"function", head + "    when: group.count.foo()\n", "r.yaml:10: rule APP-1: when: at column 16: undeclared reference to 'foo' (in container '')"},
		{"regexp", head + "    when: group.root.matches('(')\n", "r.yaml:10: rule APP-1: when: error parsing regexp: missing closing ): `(`"},
		{"too long", head + "    when: group.count > 1" + strings.Repeat(" && true", 600) + "\n", "r.yaml:10: rule APP-1: when: expression code point size exceeds limit: size: 4815, limit 4096"},
		{"too costly", head + "    when: group.frames.all(a, group.frames.all(b, a + b != ''))\n", "r.yaml:10: rule APP-1: when: may cost 508675 units, more than 50000: do not nest loops over frames or labels"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantError(t, tc.text, tc.want) })
	}
}

// wantError checks the error of a file: a line of want for each problem, in the order of the file.
func wantError(t *testing.T, text, want string) {
	t.Helper()
	_, err := rulefile.Parse("r.yaml", []byte(text))
	if !errors.Is(err, rulefile.ErrInvalid) {
		t.Fatalf("got %v, want an error that is ErrInvalid", err)
	}
	got := strings.ReplaceAll(err.Error(), "rulefile: ", "")
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("the error (-got +want):\n%s", diff)
	}
}

// TestProblems checks that all problems of a file are reported, with their parts, but not without a bound.
func TestProblems(t *testing.T) {
	_, err := rulefile.Parse("r.yaml", []byte(head+"    match:\n      minCount: x\n      frames: [{regexp: 3}]\n    when: group.x\ndisabled: [A]\n"))
	want := []*rulefile.Error{
		{File: "r.yaml", Line: 11, Column: 17, Rule: "APP-1", Field: "match.minCount", Reason: `must be a whole number, is the text "x"`},
		{File: "r.yaml", Line: 12, Column: 25, Rule: "APP-1", Field: "match.frames[0].regexp", Reason: "must be text, is the number 3; put it in quotes"},
		{File: "r.yaml", Line: 13, Column: 11, Rule: "APP-1", Field: "when", Reason: `at column 6: a group has no field "x"`},
		{File: "r.yaml", Line: 14, Column: 12, Field: "disabled[0]", Reason: `no rule has the id "A"`},
	}
	if diff := cmp.Diff(rulefile.Problems(err), want); diff != "" {
		t.Errorf("the problems (-got +want):\n%s", diff)
	}
	var b strings.Builder
	b.WriteString("schema: 1\n")
	for i := range 500 {
		fmt.Fprintf(&b, "bad%d: 1\n", i)
	}
	_, err = rulefile.Parse("r.yaml", []byte(b.String()))
	problems := rulefile.Problems(err)
	if len(problems) != 101 || problems[100].Reason != "and 400 more problems" {
		t.Errorf("got %d problems, the last %v, want 100 and a last one that counts the others", len(problems), problems[len(problems)-1])
	}
	if got := rulefile.Problems(errors.New("other")); got != nil {
		t.Errorf("another error has the problems %v, want none", got)
	}
}

// TestAliasBomb checks that a few lines cannot stand for billions of values.
func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("schema: 1\nrules:\n")
	const many = 1000
	b.WriteString("  - {id: APP-0, title: t, severity: info, categories: [c], doc: d, advice: a, verdict: leak, match: {frames: &f [")
	for range many {
		b.WriteString("{exact: a},")
	}
	b.WriteString("]}}\n")
	for i := range many {
		fmt.Fprintf(&b, "  - {id: APP-%d, title: t, severity: info, categories: [c], doc: d, advice: a, verdict: leak, match: {frames: *f}}\n", i+1)
	}
	_, err := rulefile.Parse("r.yaml", []byte(b.String()))
	if err == nil || !strings.Contains(err.Error(), "the file has more than 200000 values") {
		t.Errorf("got %v, want that the file has too many values", err)
	}
	for _, text := range []string{"schema: 1\ndisabled: &o [*o]\n", "schema: 1\nrules: &r\n  - match: {frames: *r}\n"} {
		if _, err := rulefile.Parse("r.yaml", []byte(text)); err == nil {
			t.Errorf("%q: an alias of itself is taken", text)
		}
	}
}
