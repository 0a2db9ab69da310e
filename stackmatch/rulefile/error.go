package rulefile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrInvalid is what every complaint about the content of a rule file wraps.
var ErrInvalid = errors.New("rulefile: invalid rule file")

// maxProblems bounds how many problems of one file are reported; the last one then says that there are more.
const maxProblems = 100

// Error is one problem of a rule file with its place. An error of [Load] or [Parse] may have several; [Problems] lists them.
type Error struct {
	// File is the name that was given to Load or Parse.
	File string
	// Line and Column are the place in the file, from 1; 0 when the problem is that of the file as a whole.
	Line, Column int
	// Rule is the id of the rule, or its place in the file ("rule 3") when it has none; empty outside of rules.
	Rule string
	// Field is the field as it is written in the file, inside its rule if there is one: "match.frames[1].regexp".
	Field string
	// Reason says what is wrong with it.
	Reason string
}

// Error gives "rulefile: rules.yaml:12: rule APP-001: match.frames[1].regexp: missing closing )".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("rulefile: ")
	b.WriteString(e.Place())
	b.WriteString(": ")
	b.WriteString(e.Message())
	return b.String()
}

// Place gives "rules.yaml:12", or the name of the file alone when there is no line.
func (e *Error) Place() string {
	if e.Line == 0 {
		return e.File
	}
	return fmt.Sprintf("%s:%d", e.File, e.Line)
}

// Message is the error without its place: "rule APP-001: match.frames[1].regexp: missing closing )".
func (e *Error) Message() string {
	var b strings.Builder
	switch {
	case strings.HasPrefix(e.Rule, "rule "):
		b.WriteString(e.Rule + ": ")
	case e.Rule != "":
		b.WriteString("rule " + e.Rule + ": ")
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}

// Unwrap gives [ErrInvalid].
func (e *Error) Unwrap() error { return ErrInvalid }

// Problems lists the problems of a file that an error of [Load] or [Parse] has, in the order of the file; nil when the
// file could not be read at all. The slice is the caller's.
func Problems(err error) []*Error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*Error
		for _, err := range many.Unwrap() {
			out = append(out, Problems(err)...)
		}
		return out
	}
	if one, ok := errors.AsType[*Error](err); ok {
		return []*Error{one}
	}
	return nil
}

// joinProblems makes one error of problems, in the order of the file; dropped is how many more there are.
func joinProblems(problems []*Error, dropped int) error {
	slices.SortStableFunc(problems, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	errs := make([]error, 0, min(len(problems), maxProblems+1))
	for i, p := range problems {
		if i == maxProblems {
			errs = append(errs, &Error{File: p.File, Line: p.Line, Reason: fmt.Sprintf("and %d more problems", len(problems)-i+dropped)})
			break
		}
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}
