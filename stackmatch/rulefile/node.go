package rulefile

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// node is a value of a YAML file with its position, which sigs.k8s.io/yaml itself loses by going through JSON.
type node = yaml.Node

// The kinds of node, and the tags of scalars that are told apart.
const (
	scalarNode   = yaml.ScalarNode
	mappingNode  = yaml.MappingNode
	sequenceNode = yaml.SequenceNode
	aliasNode    = yaml.AliasNode

	tagNull   = "!!null"
	tagString = "!!str"
	tagMerge  = "!!merge"
)

// literalStyle is the style of a scalar behind "|": it begins on the line below its key.
const literalStyle = yaml.LiteralStyle

// yamlLine finds the place in an error of the YAML reader: "yaml: line 3: mapping values are not allowed here".
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// readNode reads the one document of a file.
func readNode(name string, data []byte) (*node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) || err == nil && (len(document.Content) == 0 || document.Content[0].Tag == tagNull) {
		return nil, &Error{File: name, Line: 1, Reason: "the file is empty: to have no rules, write schema: 1"}
	}
	if err != nil {
		return nil, syntaxError(name, err)
	}
	var second node
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, &Error{File: name, Line: max(second.Line, 1), Reason: "the file has a second document: one file is one rule set"}
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(name, err)
	}
	return document.Content[0], nil
}

// syntaxError gives an error of the YAML reader its place.
func syntaxError(name string, err error) *Error {
	out := &Error{File: name, Line: 1, Reason: strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		out.Reason = m[2]
		if line, err := strconv.Atoi(m[1]); err == nil {
			out.Line = line
		}
	}
	out.Reason = "is no YAML: " + out.Reason
	return out
}

// describe says what a node is, for "must be a list, is ...".
func describe(n *node) string {
	switch n.Kind {
	case mappingNode:
		return "a mapping"
	case sequenceNode:
		return "a list"
	default:
		return describeScalar(n)
	}
}

// describeScalar says what a node without parts is.
func describeScalar(n *node) string {
	value := strconv.Quote(shorten(n.Value))
	switch n.Tag {
	case tagNull:
		return "empty"
	case tagString:
		return "the text " + value
	case "!!bool":
		return "the truth value " + n.Value
	case "!!int", "!!float":
		return "the number " + shorten(n.Value)
	}
	return value + " of type " + shorten(n.Tag)
}

// shorten bounds what an error repeats of its input.
func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
