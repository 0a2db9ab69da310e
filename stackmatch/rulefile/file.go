package rulefile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
)

// Bounds of a rule file. A ConfigMap cannot be larger than MaxBytes either.
const (
	// MaxBytes is how large a file may be.
	MaxBytes = 1 << 20
	// MaxRules is how many rules and how many suppressions a file may have.
	MaxRules = 1000
)

// builtinPrefix is how the ids of the built-in rules begin; files use it for those only.
const builtinPrefix = "GOR-"

// File is a rule file that was read and found right. It is immutable; all methods may be called concurrently.
type File struct {
	// Name is the name that was given to Load or Parse.
	Name string
	// SHA256 is the hash of the content, 64 hexadecimal digits.
	SHA256 string
	// Version and Owner are what the file says of itself; empty when it does not.
	Version, Owner string

	entries      []entry
	conditions   map[string]*condition
	disabled     []string
	builtin      bool
	suppressions []Suppression
}

// document is the form of a file.
type document struct {
	Schema       int           `json:"schema"`
	Version      string        `json:"version"`
	Owner        string        `json:"owner"`
	Builtin      bool          `json:"builtin"`
	Disabled     []string      `json:"disabled"`
	Rules        []entry       `json:"rules"`
	Suppressions []Suppression `json:"suppressions"`
}

// entry is a rule of a file.
type entry struct {
	stackmatch.Rule

	// When is the source of the condition.
	When string `json:"when"`
}

// Load reads a rule file. An error is of the system, wrapped, or lists the problems of the file, see [Problems].
func Load(path string) (*File, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// readFile reads a regular file of bounded size. It does not block on anything else, such as a pipe.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("rulefile: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{File: path, Reason: "is no regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("rulefile: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("rulefile: %w", err)
	}
	return data, nil
}

// Parse reads a rule file from memory; name is what errors call it. It compiles all that the file has, so that a File
// that was parsed works.
func Parse(name string, data []byte) (*File, error) {
	if len(data) > MaxBytes {
		return nil, &Error{File: name, Reason: fmt.Sprintf("is larger than %d bytes", MaxBytes)}
	}
	root, err := readNode(name, data)
	if err != nil {
		return nil, err
	}
	p := parser{
		decoder:  decoder{file: name, places: make(map[string]*node), fields: make(map[reflect.Type][]field)},
		builtins: builtinRules(),
		document: document{Builtin: true},
	}
	p.seed = p.seedRule
	p.value(root, "", reflect.ValueOf(&p.document).Elem())
	if root.Kind == mappingNode {
		p.check()
	}
	if len(p.problems) > 0 {
		return nil, joinProblems(p.problems, p.dropped)
	}
	hash := sha256.Sum256(data)
	return &File{
		Name: name, SHA256: hex.EncodeToString(hash[:]), Version: p.document.Version, Owner: p.document.Owner,
		entries: p.document.Rules, conditions: p.conditions, disabled: p.document.Disabled, builtin: p.document.Builtin,
		suppressions: p.document.Suppressions,
	}, nil
}

// builtinRules gives the built-in rules by id.
func builtinRules() map[string]stackmatch.Rule {
	out := make(map[string]stackmatch.Rule)
	for _, r := range stackmatch.Builtin() {
		out[r.ID] = r
	}
	return out
}

// Options say how the rules of a file are used. The zero value works.
type Options struct {
	// Slope gives the growth of a group in goroutines per minute, which a group does not have by itself; known is false when
	// it cannot tell. See [Slopes] for one. Nil means [stackmatch.Context.PerMinute], which knows it when there are several
	// dumps and their times are known. When it is not known group.slopePerMinute is 0.
	Slope func(group *stackmatch.Group, in *stackmatch.Context) (perMinute float64, known bool)
	// Failed is told of a condition that could not be evaluated, which then does not hold: a missing label, a division by
	// zero, the cost limit. It may be called concurrently. Nil means that nobody is told.
	Failed func(rule string, err error)
}

// RuleSet makes the rule set of the file: the file's own rules in their order, then the built-in ones, those that the
// file overrides changed and without those that it switches off. The first rule that matches wins.
func (f *File) RuleSet(o Options) (*stackmatch.RuleSet, error) {
	var base []stackmatch.Rule
	if f.builtin {
		base = stackmatch.Builtin()
	}
	changes := make([]stackmatch.Rule, 0, len(f.entries))
	for i := range f.entries {
		rule := f.entries[i].Rule
		if c := f.conditions[rule.ID]; c != nil {
			rule.Match.When = (&hook{condition: c, options: o}).when
		}
		changes = append(changes, rule)
	}
	off := f.disabled
	if !f.builtin {
		off = slices.DeleteFunc(slices.Clone(off), func(id string) bool { return !f.has(id) })
	}
	rules, err := stackmatch.Override(base, changes, off...)
	if err != nil {
		return nil, fmt.Errorf("rulefile: %s: %w", f.Name, err)
	}
	set, err := stackmatch.NewRuleSet(rules...)
	if err != nil {
		return nil, fmt.Errorf("rulefile: %s: %w", f.Name, err)
	}
	return set, nil
}

func (f *File) has(id string) bool {
	return slices.ContainsFunc(f.entries, func(e entry) bool { return e.ID == id })
}

// Rules are the ids of the rules that the file has, in order: own ones and overridden built-in ones. The slice is the caller's.
func (f *File) Rules() []string {
	out := make([]string, 0, len(f.entries))
	for i := range f.entries {
		out = append(out, f.entries[i].ID)
	}
	return out
}

// Overrides are the ids of the built-in rules that the file changes, in order. The slice is the caller's.
func (f *File) Overrides() []string {
	return slices.DeleteFunc(f.Rules(), func(id string) bool { return !strings.HasPrefix(id, builtinPrefix) })
}

// Disabled are the ids of the rules that the file switches off. The slice is the caller's.
func (f *File) Disabled() []string { return slices.Clone(f.disabled) }

// Suppressions are those of the file, in order, expired ones too. The slice is the caller's.
func (f *File) Suppressions() []Suppression { return slices.Clone(f.suppressions) }

// Expired are the suppressions of the file that no longer hold at a time: someone has to renew them or to fix the leak.
func (f *File) Expired(now time.Time) []Suppression {
	return slices.DeleteFunc(f.Suppressions(), func(s Suppression) bool { return now.Before(s.Expires) })
}
