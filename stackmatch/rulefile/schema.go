package rulefile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
)

// Schema gives the JSON Schema (draft 7, which editors know) of rule files, indented. It is made from the types that
// files are read into; the file schema.json of this package is its output.
func Schema() ([]byte, error) {
	s := schemaMaker{definitions: make(map[string]any)}
	root := s.structure(reflect.TypeFor[document](), "file")
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "leakguard rule file"
	root["definitions"] = s.definitions
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("rulefile: %w", err)
	}
	return append(out, '\n'), nil
}

// schemaMaker makes the schema of types.
type schemaMaker struct{ definitions map[string]any }

// definition names the types that have a part of the schema of their own.
func definition(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[entry]():
		return "rule"
	case reflect.TypeFor[stackmatch.Match]():
		return "match"
	case reflect.TypeFor[stackmatch.Pattern]():
		return "pattern"
	case reflect.TypeFor[Suppression]():
		return "suppression"
	}
	return ""
}

// value gives the schema of a type; path is where it stands, such as "match.predicate".
func (s *schemaMaker) value(t reflect.Type, path string) map[string]any {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "string", "pattern": `^[0-9.]+(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*$`}
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "pattern": `^\d{4}-\d{2}-\d{2}([Tt]\d{2}:\d{2}:\d{2}.*)?$`}
	}
	switch t.Kind() {
	case reflect.Struct:
		name := definition(t)
		if _, done := s.definitions[name]; !done {
			s.definitions[name] = s.structure(t, name)
		}
		return map[string]any{"$ref": "#/definitions/" + name}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.value(t.Elem(), path)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.value(t.Elem(), path)}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		out := map[string]any{"type": "string"}
		if words := wordsOf(t, path); words != nil {
			out["enum"] = words
		}
		return out
	default:
		return map[string]any{"type": "integer", "minimum": 0}
	}
}

// structure gives the schema of a struct.
func (s *schemaMaker) structure(t reflect.Type, name string) map[string]any {
	properties := make(map[string]any)
	for _, f := range fieldsOf(t) {
		path := name + "." + f.name
		property := s.value(f.typ, path)
		if _, ref := property["$ref"]; ref {
			property = map[string]any{"allOf": []any{property}} // which may have a description beside it
		}
		property["description"] = fieldDocs()[path]
		properties[f.name] = property
	}
	out := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	s.demand(out, name)
	return out
}

// demand adds what must be given.
func (s *schemaMaker) demand(out map[string]any, name string) {
	properties, ok := out["properties"].(map[string]any)
	if !ok {
		return
	}
	switch name {
	case "file":
		out["required"] = []string{"schema"}
		properties["schema"] = map[string]any{"const": schemaVersion, "description": fieldDocs()["file.schema"]}
	case "rule":
		out["required"] = []string{"id"}
		out["anyOf"] = []any{
			map[string]any{"properties": map[string]any{"id": map[string]any{"pattern": "^" + builtinPrefix}}},
			map[string]any{"required": []string{"title", "severity", "categories", "doc", "advice", "verdict"}},
		}
	case "pattern":
		out["minProperties"], out["maxProperties"] = 1, 1
	case "suppression":
		out["required"] = []string{"owner", "reason", "expires"}
		out["anyOf"] = []any{
			need("rule"), need("category"), need("controller"), need("fingerprint"), need("culprit"),
		}
	}
}

func need(field string) map[string]any { return map[string]any{"required": []string{field}} }

// fieldDocs are the descriptions that editors show. A test sees that each field has one.
func fieldDocs() map[string]string {
	return map[string]string{
		"file.schema":       "Version of the form of this file: 1.",
		"file.version":      "Your name for this state of the file; it stands in the audit record.",
		"file.owner":        "Who answers for the file; it stands in the audit record.",
		"file.builtin":      "Whether the built-in rules come behind those of this file. Default true.",
		"file.disabled":     "Ids of rules to switch off.",
		"file.rules":        "Rules, in order: the first that matches wins. One with the id of a built-in rule changes that rule.",
		"file.suppressions": "Findings to be silent about for a while.",

		"rule.id":         "Unique id without spaces. Ids that begin with GOR- are those of built-in rules, which the entry then changes: what it leaves out stays.",
		"rule.title":      "One line for people, without a full stop.",
		"rule.severity":   "How soon somebody must act.",
		"rule.categories": "Kinds of trouble; findings carry the first one.",
		"rule.doc":        "What happens, and how the rule tells it from the harmless twin.",
		"rule.sources":    "Public reports or articles that the rule rests on.",
		"rule.advice":     "What to do about it.",
		"rule.verdict":    "What one dump can say.",
		"rule.growing":    "The verdict once the group has grown between dumps; not milder than verdict.",
		"rule.enough":     "From how many goroutines on one dump is enough for verdict: fewer are suspect, until they grow. 0 means any number.",
		"rule.trap":       "Row of the catalogue of measured traps.",
		"rule.blame":      "Function to name when the code to fix is in no frame of the main module.",
		"rule.companions": "Frames of goroutines that belong to the matched ones and grow with them.",
		"rule.match":      "What a group of goroutines must look like; all that is given must hold.",
		"rule.when":       "CEL condition over group (" + strings.Join(conditionFields(), ", ") + "), asked when all of match holds.",

		"match.frames":      "Functions that must be on the stack in this order, leaf first, with any gaps.",
		"match.without":     "Functions that must not be on the stack.",
		"match.leaf":        "Function that waits: the first outside the runtime, sync, internal/poll, reflect and time.",
		"match.createdBy":   "Function with the go statement.",
		"match.waitReasons": "Wait reasons of which the group's must be one, such as chan send or select.",
		"match.minWait":     "How long the oldest goroutine must have waited, such as 10m.",
		"match.minCount":    "Least number of goroutines of the group; 0 means no bound.",
		"match.maxCount":    "Largest number of goroutines of the group; 0 means no bound.",
		"match.labels":      "Goroutine labels that the group must have; an empty value means any.",
		"match.predicate":   predicateDoc(),

		"pattern.exact":  "The whole name of the function.",
		"pattern.prefix": "How the name begins.",
		"pattern.regexp": "Regular expression (RE2) that matches somewhere in the name.",

		"suppression.rule":        "Id of the rule of the findings.",
		"suppression.category":    "Category of the findings.",
		"suppression.controller":  "Controller of the findings.",
		"suppression.fingerprint": "Fingerprint of one finding.",
		"suppression.culprit":     "Function that the findings blame.",
		"suppression.owner":       "Who answers for the suppression.",
		"suppression.reason":      "Why the findings are all right for now.",
		"suppression.expires":     "Last day on which it holds, such as 2027-01-31, or a time in RFC 3339.",
	}
}

// predicateDoc explains the predicates.
func predicateDoc() string {
	lines := []string{"Named condition that looks at the other goroutines too:"}
	for _, p := range stackmatch.Predicates() {
		lines = append(lines, p.Name+": "+p.Doc)
	}
	return strings.Join(slices.Clip(lines), "\n")
}
