package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// check runs the subcommand in this process.
func check(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := environment{stdout: &stdout, stderr: &stderr, getenv: func(string) string { return "" }}
	status, err := runCheck(t.Context(), args, &env)
	if err != nil {
		stderr.WriteString(err.Error())
	}
	return outcome{status: status, stdout: stdout.String(), stderr: stderr.String()}
}

const goodRules = `schema: 1
disabled: [GOR-506]
rules:
  - {id: GOR-505, severity: critical}
suppressions:
  - {rule: GOR-501, owner: team, reason: known, expires: 2999-12-31}
`

func TestCheck(t *testing.T) {
	good := file(t, "good.yaml", goodRules)
	expired := file(t, "expired.yaml", strings.Replace(goodRules, "2999", "2001", 1))
	bad := file(t, "bad.yaml", "schema: 1\nrules:\n  - id: GOR-505\n    when: group.cuont > 1\n    severety: info\n")
	for _, tc := range []struct {
		name string
		args []string
		want outcome
	}{
		{"good", []string{good}, outcome{stdout: good + ": valid: 1 rule (1 of them built-in ones changed), 1 switched off, 1 suppression\n"}},
		{"expired", []string{expired}, outcome{status: 1, stdout: expired + ":6: suppression of GOR-501 by team expired on 2002-01-01: known\n" +
			expired + ": valid: 1 rule (1 of them built-in ones changed), 1 switched off, 1 suppression\n"}},
		{"bad", []string{bad}, outcome{
			status: 1,
			stdout: bad + `:4: rule GOR-505: when: at column 6: a group has no field "cuont"; did you mean "count"?` + "\n" +
				bad + `:5: rule GOR-505: unknown field "severety"; did you mean "severity"?` + "\n",
		}},
		{"markdown", []string{"-o", "markdown", good}, outcome{stdout: "- " + good + ": valid: 1 rule (1 of them built-in ones changed), 1 switched off, 1 suppression\n"}},
		{"missing", []string{good, "/nowhere/rules.yaml"}, outcome{status: 2, stderr: "rulefile: stat /nowhere/rules.yaml: no such file or directory"}},
		{"form", []string{"-o", "xml", good}, outcome{status: 2, stderr: `stackmatch: -o "xml" is none of text, json, markdown`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := check(t, tc.args...); got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
	if got := check(t); got.status != 2 || !strings.Contains(got.stderr, "usage: stackmatch check") {
		t.Errorf("no file: got %+v, want the usage", got)
	}
}

func TestCheckJSON(t *testing.T) {
	bad := file(t, "bad.yaml", "schema: 1\nrules:\n  - id: GOR-505\n    when: group.cuont > 1\n")
	good := file(t, "good.yaml", goodRules)
	got := check(t, "-o", "json", bad, good)
	var files []checkedFile
	if err := json.Unmarshal([]byte(got.stdout), &files); err != nil || got.status != 1 || len(files) != 2 {
		t.Fatalf("got %+v, error %v", got, err)
	}
	p := files[0].Problems[0]
	if files[0].Valid || p.Kind != "invalid" || p.Line != 4 || p.Column != 11 || p.Rule != "GOR-505" || p.Field != "when" {
		t.Errorf("got %+v", files[0])
	}
	if f := files[1]; !f.Valid || len(f.SHA256) != 64 || f.Rules[0] != "GOR-505" || f.Overrides[0] != "GOR-505" ||
		f.Disabled[0] != "GOR-506" || f.Suppressions != 1 || len(f.Problems) != 0 {
		t.Errorf("got %+v", f)
	}
}

// TestCheckSchema checks that the schema that is printed is one, and that it goes without files only.
func TestCheckSchema(t *testing.T) {
	got := check(t, "-schema")
	var schema map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &schema); err != nil || got.status != 0 || schema["$schema"] == nil {
		t.Errorf("got %+v, error %v", got, err)
	}
	if got := check(t, "-schema", filepath.Join(t.TempDir(), "x.yaml")); got.status != 2 {
		t.Errorf("with a file: got the status %d, want 2", got.status)
	}
}
