package rulefile

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
)

// maxNodes bounds the values of a file, aliases counted each time they are used: a few nested ones can stand for billions.
const maxNodes = 200_000

// maxKept bounds the problems that are kept while a file is read.
const maxKept = 1000

// decoder fills Go values from YAML and notes where each of them stands. It reports all that it does not understand.
type decoder struct {
	file     string
	problems []*Error
	dropped  int              // problems beyond maxKept
	places   map[string]*node // by path: "rules[2].match.frames[0]"
	nodes    int
	fields   map[reflect.Type][]field // remembered from fieldsOf
	// seed gives an element of a list its starting value, on which the file's fields are then laid.
	seed func(n *node, element reflect.Value)
}

// wrong notes a problem of the value at a path.
func (d *decoder) wrong(n *node, path, format string, args ...any) {
	d.note(&Error{File: d.file, Line: n.Line, Column: n.Column, Field: path, Reason: fmt.Sprintf(format, args...)})
}

// note keeps a problem, or counts it when there are too many.
func (d *decoder) note(e *Error) {
	if len(d.problems) < maxKept {
		d.problems = append(d.problems, e)
	} else {
		d.dropped++
	}
}

// place gives the position of a path, or that of the nearest value around it.
func (d *decoder) place(path string) *node {
	for path != "" {
		if n := d.places[path]; n != nil {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return d.places[""]
}

// value fills v from a node. A value that is left empty ("title:") counts as not given.
func (d *decoder) value(n *node, path string, v reflect.Value) {
	d.places[path] = n
	if d.nodes++; d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.wrong(n, path, "the file has more than %d values", maxNodes)
		}
		return
	}
	n = resolve(n)
	if n.Kind == scalarNode && n.Tag == tagNull {
		return
	}
	d.fill(n, path, v)
}

// fill fills v from a node that is neither an alias nor empty.
func (d *decoder) fill(n *node, path string, v reflect.Value) {
	switch v.Interface().(type) {
	case time.Duration:
		d.duration(n, path, v)
		return
	case time.Time:
		d.date(n, path, v)
		return
	case stackmatch.Pattern:
		v.SetZero() // a pattern is replaced as a whole
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, path, v)
	case reflect.Slice:
		d.list(n, path, v)
	case reflect.Map:
		d.mapping(n, path, v)
	default:
		d.scalar(n, path, v)
	}
}

// structure fills the fields of a struct. Unknown and repeated fields are problems.
func (d *decoder) structure(n *node, path string, v reflect.Value) {
	if n.Kind != mappingNode {
		d.wrong(n, path, "must be a mapping, is %s", describe(n))
		return
	}
	fields, ok := d.fields[v.Type()]
	if !ok {
		fields = fieldsOf(v.Type())
		d.fields[v.Type()] = fields
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		if d.repeated(key, path, seen) {
			continue
		}
		f, ok := fieldNamed(fields, key.Value)
		switch {
		case ok:
			d.value(value, at, v.FieldByIndex(f.index))
		case key.Tag == tagMerge:
			d.wrong(key, path, "merge keys (<<) are not supported; an alias for a whole value is")
		default:
			d.wrong(key, path, "unknown field %q%s", shorten(key.Value), advise(v.Type(), key.Value, namesOf(fields)))
		}
	}
}

// advise says what an unknown field may be meant for.
func advise(t reflect.Type, name string, known []string) string {
	if t == reflect.TypeFor[stackmatch.Match]() && name == "when" {
		return "; a condition stands beside match, not in it"
	}
	if _, ok := fieldNamed(fieldsOf(reflect.TypeFor[stackmatch.Match]()), name); ok && t == reflect.TypeFor[entry]() {
		return "; it belongs into match"
	}
	return suggest(name, known)
}

// repeated reports, and notes as a problem, that a mapping has a key twice.
func (d *decoder) repeated(key *node, path string, seen map[string]int) bool {
	first, dup := seen[key.Value]
	if dup {
		d.wrong(key, path, "the field %q stands there twice: also on line %d", shorten(key.Value), first)
		return true
	}
	seen[key.Value] = key.Line
	return false
}

// list fills a slice with new elements.
func (d *decoder) list(n *node, path string, v reflect.Value) {
	if n.Kind != sequenceNode {
		d.wrong(n, path, "must be a list, is %s%s", describe(n), hint(n.Kind == scalarNode, "; write [value] or - value"))
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, 0)
	for i, item := range n.Content {
		if d.nodes > maxNodes {
			return
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		element := reflect.New(v.Type().Elem()).Elem()
		d.seed(item, element)
		if resolved := resolve(item); resolved.Kind == scalarNode && resolved.Tag == tagNull {
			d.wrong(item, at, "is empty")
			continue
		}
		d.value(item, at, element)
		out = reflect.Append(out, element)
	}
	v.Set(out)
}

// mapping fills a map of texts.
func (d *decoder) mapping(n *node, path string, v reflect.Value) {
	if n.Kind != mappingNode {
		d.wrong(n, path, "must be a mapping, is %s", describe(n))
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.Content)/2)
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if d.repeated(key, path, seen) {
			continue
		}
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(n.Content[i+1], join(path, key.Value), element)
		out.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), element)
	}
	v.Set(out)
}

// scalar fills a text, a number or a truth value.
func (d *decoder) scalar(n *node, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		d.text(n, path, v)
	case reflect.Bool:
		var b bool
		if n.Kind != scalarNode || n.Tag != "!!bool" || n.Decode(&b) != nil {
			d.wrong(n, path, "must be true or false, is %s", describe(n))
			return
		}
		v.SetBool(b)
	default:
		var i int64
		if n.Kind != scalarNode || n.Tag != "!!int" || n.Decode(&i) != nil || v.OverflowInt(i) {
			d.wrong(n, path, "must be a whole number, is %s", describe(n))
			return
		}
		v.SetInt(i)
	}
}

// text fills a text, which for some fields must be one of a few words.
func (d *decoder) text(n *node, path string, v reflect.Value) {
	if n.Kind != scalarNode || n.Tag != tagString {
		d.wrong(n, path, "must be text, is %s%s", describe(n), hint(n.Kind == scalarNode, "; put it in quotes"))
		return
	}
	if words := wordsOf(v.Type(), path); words != nil && !contains(words, n.Value) {
		d.wrong(n, path, "%q is none of %s%s", shorten(n.Value), strings.Join(words, ", "), suggest(n.Value, words))
		return
	}
	v.SetString(n.Value)
}

// duration fills a duration from "10m".
func (d *decoder) duration(n *node, path string, v reflect.Value) {
	parsed, err := time.ParseDuration(n.Value)
	if n.Kind != scalarNode || err != nil {
		d.wrong(n, path, "must be a duration such as 10m or 1h30m, is %s", describe(n))
		return
	}
	v.SetInt(int64(parsed))
}

// date fills a time from "2027-01-31", which means the end of that day in UTC, or from RFC 3339.
func (d *decoder) date(n *node, path string, v reflect.Value) {
	if n.Kind == scalarNode {
		if day, err := time.Parse(time.DateOnly, n.Value); err == nil {
			v.Set(reflect.ValueOf(day.AddDate(0, 0, 1)))
			return
		}
		if at, err := time.Parse(time.RFC3339, n.Value); err == nil {
			v.Set(reflect.ValueOf(at.UTC()))
			return
		}
	}
	d.wrong(n, path, "must be a day such as 2027-01-31 or a time such as 2027-01-31T12:00:00Z, is %s", describe(n))
}

// resolve follows an alias.
func resolve(n *node) *node {
	if n.Kind == aliasNode {
		return n.Alias
	}
	return n
}

// join makes the path of a field.
func join(path, name string) string {
	if path == "" {
		return shorten(name)
	}
	return path + "." + shorten(name)
}

// hint gives a text when a condition holds.
func hint(ok bool, text string) string {
	if ok {
		return text
	}
	return ""
}
