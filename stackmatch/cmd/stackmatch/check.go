package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

// checkedFile is what check says of one rule file; with -o json it prints a list of these.
type checkedFile struct {
	File string `json:"file"`
	// Valid says that the file can be used. A suppression that has expired does not change that.
	Valid   bool   `json:"valid"`
	SHA256  string `json:"sha256,omitempty"`
	Version string `json:"version,omitempty"`
	Owner   string `json:"owner,omitempty"`
	// Rules, Overrides and Disabled are ids.
	Rules        []string `json:"rules"`
	Overrides    []string `json:"overrides"`
	Disabled     []string `json:"disabled"`
	Suppressions int      `json:"suppressions"`
	// Problems are what somebody has to put right; never nil.
	Problems []fileProblem `json:"problems"`
}

// fileProblem is one problem of a rule file.
type fileProblem struct {
	// Kind is "invalid" or "expired".
	Kind   string `json:"kind"`
	Line   int    `json:"line"`
	Column int    `json:"column,omitempty"`
	Rule   string `json:"rule,omitempty"`
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`

	text string // of the readable output
}

// runCheck checks rule files: the exit status is 1 when one of them is wrong or has an expired suppression, 2 when one
// cannot be read.
func runCheck(_ context.Context, args []string, env *environment) (int, error) {
	var s settings
	fs := newFlags("check", "[-schema] [-o json] FILE...", env, &s)
	schema := fs.Bool("schema", false, "print the JSON Schema of rule files, for editors, and end")
	names, err := parse(fs, args, &s)
	if err != nil {
		return exitTrouble, err
	}
	if *schema && len(names) == 0 {
		text, err := rulefile.Schema()
		if err != nil {
			return exitTrouble, err
		}
		return exitClean, write(env, string(text))
	}
	if len(names) == 0 || *schema {
		fs.Usage()
		return exitTrouble, errUsage
	}
	files := make([]checkedFile, 0, len(names))
	status := exitClean
	for _, name := range names {
		file, err := checkFile(name, time.Now())
		if err != nil {
			return exitTrouble, err
		}
		if len(file.Problems) > 0 {
			status = exitFindings
		}
		files = append(files, file)
	}
	return status, printChecked(files, s.output, env)
}

// checkFile checks one file. An error means that it could not be read.
func checkFile(name string, now time.Time) (checkedFile, error) {
	out := checkedFile{File: name, Rules: []string{}, Overrides: []string{}, Disabled: []string{}, Problems: []fileProblem{}}
	file, err := rulefile.Load(name)
	if err != nil {
		return out, out.invalid(err)
	}
	out.Valid, out.SHA256, out.Version, out.Owner = true, file.SHA256, file.Version, file.Owner
	out.Rules, out.Overrides = file.Rules(), file.Overrides()
	out.Disabled = append(out.Disabled, file.Disabled()...)
	out.Suppressions = len(file.Suppressions())
	for _, x := range file.Expired(now) {
		out.Problems = append(out.Problems, fileProblem{
			Kind: "expired", Line: x.Line, Rule: x.Rule, Field: "expires", Reason: x.Expiry(),
			text: fmt.Sprintf("%s:%d: %s", name, x.Line, x.Expiry()),
		})
	}
	return out, nil
}

// invalid notes the problems of a file, or gives back an error that is none of its content.
func (c *checkedFile) invalid(err error) error {
	if !errors.Is(err, rulefile.ErrInvalid) {
		return err
	}
	for _, p := range rulefile.Problems(err) {
		c.Problems = append(c.Problems, fileProblem{
			Kind: "invalid", Line: p.Line, Column: p.Column, Rule: p.Rule, Field: p.Field, Reason: p.Reason,
			text: p.Place() + ": " + p.Message(),
		})
	}
	return nil
}

// printChecked prints what was found, a line for each problem so that editors can jump there.
func printChecked(files []checkedFile, form string, env *environment) error {
	if form == "json" {
		encoder := json.NewEncoder(env.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(files)
	}
	bullet := ""
	if form == "markdown" {
		bullet = "- "
	}
	var b strings.Builder
	for i := range files {
		f := &files[i]
		for _, p := range f.Problems {
			b.WriteString(bullet + strings.ReplaceAll(p.text, "\n", " ") + "\n")
		}
		if f.Valid {
			fmt.Fprintf(&b, "%s%s: valid: %s (%d of them built-in ones changed), %d switched off, %s\n", bullet, f.File,
				plural(len(f.Rules), "rule"), len(f.Overrides), len(f.Disabled), plural(f.Suppressions, "suppression"))
		}
	}
	return write(env, b.String())
}
