package rulefile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

// TestSchema keeps the committed schema true; go test -run Schema -update writes it.
func TestSchema(t *testing.T) {
	got, err := rulefile.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err = os.WriteFile("schema.json", got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("schema.json is stale, run go test ./stackmatch/rulefile -run Schema -update (-got +want):\n%s", diff)
	}
}

// TestSchemaDescriptions checks that editors have something to show for every field.
func TestSchemaDescriptions(t *testing.T) {
	schema := readSchema(t)
	all := map[string]any{"file": schema}
	maps.Copy(all, schema["definitions"].(map[string]any))
	for name, d := range all {
		for field, property := range d.(map[string]any)["properties"].(map[string]any) {
			if text, _ := property.(map[string]any)["description"].(string); text == "" {
				t.Errorf("%s.%s has no description", name, field)
			}
		}
	}
}

// TestSchemaExamples checks that the schema takes the files that Parse takes.
func TestSchemaExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("got the examples %v, error %v", files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rulefile.Parse(name, data); err != nil {
			t.Error(err)
		}
		for _, problem := range validate(t, data) {
			t.Errorf("%s: the schema says %s", name, problem)
		}
	}
}

// TestSchemaRefuses checks that the schema refuses wrong forms as Parse does.
func TestSchemaRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no schema":           "rules: []\n",
		"new schema":          "schema: 2\n",
		"unknown field":       "schema: 1\nrule: []\n",
		"version as number":   "schema: 1\nversion: 1.2\n",
		"builtin as text":     "schema: 1\nbuiltin: 'no'\n",
		"off as text":         "schema: 1\ndisabled: GOR-501\n",
		"rule without all":    "schema: 1\nrules: [{id: APP-1}]\n",
		"severity":            strings.Replace(head, "info", "warn", 1) + "    match: {minWait: 5m}\n",
		"predicate":           head + "    match: {predicate: none}\n",
		"field of match":      head + "    match: {minwait: 5m}\n",
		"minutes as number":   head + "    match: {minWait: 5}\n",
		"minutes as text":     head + "    match: {minWait: five}\n",
		"negative count":      head + "    match: {minCount: -1, minWait: 5m}\n",
		"two patterns":        head + "    match: {leaf: {exact: a, prefix: b}}\n",
		"no pattern":          head + "    match: {frames: [{}]}\n",
		"label as number":     head + "    match: {labels: {a: 1}}\n",
		"reason missing":      strings.Replace(silent, "    reason: known\n", "", 1),
		"expiry missing":      strings.Replace(silent, "    expires: 2027-01-31\n", "", 1),
		"expiry wrong":        strings.Replace(silent, "2027-01-31", "soon", 1),
		"selects all":         strings.Replace(silent, "rule: GOR-505\n    owner", "owner", 1),
		"suppression's field": silent + "    expiry: x\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := rulefile.Parse("r.yaml", []byte(text)); err == nil {
				t.Error("Parse takes it")
			}
			if len(validate(t, []byte(text))) == 0 {
				t.Error("the schema takes it")
			}
		})
	}
}

type object = map[string]any

func readSchema(t *testing.T) object {
	t.Helper()
	data, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema object
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate says what a schema finds wrong with a YAML file.
func validate(t *testing.T, data []byte) []string {
	t.Helper()
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	v := validator{t: t, root: readSchema(t)}
	v.check(v.root, value, "")
	return v.problems
}

// validator is the part of JSON Schema that our schema uses. An unknown keyword fails the test.
type validator struct {
	t        *testing.T
	root     object
	problems []string
}

func (v *validator) wrong(path, format string, args ...any) {
	v.problems = append(v.problems, path+": "+fmt.Sprintf(format, args...))
}

// fits reports whether a value follows a part of the schema.
func (v *validator) fits(schema object, value any, path string) bool {
	inner := validator{t: v.t, root: v.root}
	inner.check(schema, value, path)
	return len(inner.problems) == 0
}

func (v *validator) check(schema object, value any, path string) {
	fields, isObject := value.(object)
	for keyword, want := range schema {
		switch keyword {
		case "$schema", "title", "description", "definitions", "additionalProperties":
		case "$ref":
			name := strings.TrimPrefix(want.(string), "#/definitions/")
			v.check(v.root["definitions"].(object)[name].(object), value, path)
		case "allOf":
			for _, s := range want.([]any) {
				v.check(s.(object), value, path)
			}
		case "anyOf":
			if !slices.ContainsFunc(want.([]any), func(s any) bool { return v.fits(s.(object), value, path) }) {
				v.wrong(path, "fits none of anyOf")
			}
		case "type":
			if got := typeOf(value); got != want {
				v.wrong(path, "is %s, not %s", got, want)
			}
		case "const":
			if value != want {
				v.wrong(path, "is %v, not %v", value, want)
			}
		case "enum":
			if !slices.Contains(want.([]any), value) {
				v.wrong(path, "%v is not in the list", value)
			}
		case "minimum":
			if n, ok := value.(float64); ok && n < want.(float64) {
				v.wrong(path, "is below %v", want)
			}
		case "pattern":
			if s, ok := value.(string); ok && !regexp.MustCompile(want.(string)).MatchString(s) {
				v.wrong(path, "%q does not match %s", s, want)
			}
		case "required":
			for _, name := range want.([]any) {
				if _, ok := fields[name.(string)]; isObject && !ok {
					v.wrong(path, "%s is missing", name)
				}
			}
		case "minProperties":
			if isObject && float64(len(fields)) < want.(float64) {
				v.wrong(path, "has too few fields")
			}
		case "maxProperties":
			if isObject && float64(len(fields)) > want.(float64) {
				v.wrong(path, "has too many fields")
			}
		case "items":
			list, _ := value.([]any)
			for i, item := range list {
				v.check(want.(object), item, fmt.Sprintf("%s[%d]", path, i))
			}
		case "properties":
			for name, s := range want.(object) {
				if field, ok := fields[name]; ok {
					v.check(s.(object), field, path+"."+name)
				}
			}
		default:
			v.t.Fatalf("the validator of this test does not know %q", keyword)
		}
	}
	v.checkOthers(schema, fields, path)
}

// checkOthers checks the fields that properties does not name.
func (v *validator) checkOthers(schema, fields object, path string) {
	known, _ := schema["properties"].(object)
	for name, field := range fields {
		if _, ok := known[name]; ok {
			continue
		}
		switch others := schema["additionalProperties"].(type) {
		case bool:
			v.wrong(path, "%s is unknown", name)
		case object:
			v.check(others, field, path+"."+name)
		}
	}
}

func typeOf(value any) string {
	switch value := value.(type) {
	case object:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if value == float64(int64(value)) {
			return "integer"
		}
		return "number"
	}
	return "null"
}
