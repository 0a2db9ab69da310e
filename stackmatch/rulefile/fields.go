package rulefile

import (
	"reflect"
	"slices"
	"strings"

	"github.com/leakguard/leakguard/stackmatch"
)

// field is a field of a struct as files write it.
type field struct {
	name  string
	index []int
	typ   reflect.Type
}

// fieldsOf gives the fields that a struct has in a file: those with a name in their json tag, embedded ones as the
// struct's own. Reading and the schema both go by it, so they cannot differ.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "" || name == "-" {
			continue
		}
		out = append(out, field{name: name, index: f.Index, typ: f.Type})
	}
	return out
}

// fieldNamed finds a field.
func fieldNamed(fields []field, name string) (field, bool) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

// namesOf lists the names of fields.
func namesOf(fields []field) []string {
	out := make([]string, 0, len(fields))
	for _, f := range fields {
		out = append(out, f.name)
	}
	return out
}

// wordsOf gives the words that a text can only be; nil when it is free.
func wordsOf(t reflect.Type, path string) []string {
	switch {
	case t == reflect.TypeFor[stackmatch.Verdict]():
		return []string{string(stackmatch.VerdictBenign), string(stackmatch.VerdictSuspect), string(stackmatch.VerdictLeak)}
	case t == reflect.TypeFor[stackmatch.Severity]():
		return []string{string(stackmatch.SeverityInfo), string(stackmatch.SeverityWarning), string(stackmatch.SeverityCritical)}
	case strings.HasSuffix(path, "match.predicate"):
		out := []string{""} // which takes the predicate from a built-in rule
		for _, p := range stackmatch.Predicates() {
			out = append(out, p.Name)
		}
		return out
	}
	return nil
}

func contains(words []string, word string) bool { return slices.Contains(words, word) }
