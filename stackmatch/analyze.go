package stackmatch

import (
	"slices"
	"time"
)

// Options says how to analyse. The zero value uses the built-in rules and guesses the main module.
type Options struct {
	// Main is the path of the program's main module, whose frames are blamed first; empty means [GuessMain].
	Main string
	// Rules are the rules to apply; nil means those of [Builtin].
	Rules *RuleSet
	// Objects are the numbers of live objects (clusters, workspaces, tenants) at the time of each dump, so that one goroutine
	// for each object is not taken for a leak. Empty means unknown; otherwise there must be one for each dump.
	Objects []int
	// Times say when each dump was taken, for the growth per hour. Empty means unknown.
	Times []time.Time
}

// Analysis is what the dumps of one process say. Its JSON is the output of the command.
type Analysis struct {
	// Verdict is the worst verdict of the findings; benign when there is none.
	Verdict Verdict `json:"verdict"`
	// Goroutines is how many goroutines the last dump has.
	Goroutines int `json:"goroutines"`
	// Findings are what was found, the worst first; never nil.
	Findings []Finding `json:"findings"`
	// Errors are what could not be read, of all dumps; never nil.
	Errors []ReadError `json:"errors"`
}

// Analyze says what is wrong with a process, from one dump of it or from several in the order they were taken. Several
// dumps tell growth from what is there by design, a staircase from a burst that has ended, and one goroutine per object
// from a leak; one dump can often only suspect. An error means that the options do not fit; nil dumps are left out.
func Analyze(dumps []*Dump, o Options) (Analysis, error) {
	dumps = slices.DeleteFunc(slices.Clone(dumps), func(d *Dump) bool { return d == nil })
	if err := o.validate(len(dumps)); err != nil {
		return Analysis{}, err
	}
	out := Analysis{Verdict: VerdictBenign, Findings: []Finding{}, Errors: []ReadError{}}
	if len(dumps) == 0 {
		return out, nil
	}
	if o.Rules == nil {
		rules, err := NewRuleSet(Builtin()...)
		if err != nil {
			return Analysis{}, err
		}
		o.Rules = rules
	}
	last := dumps[len(dumps)-1]
	if o.Main == "" {
		o.Main = GuessMain(last)
	}
	for _, d := range dumps {
		out.Errors = append(out.Errors, d.Errors...)
	}
	out.Goroutines = last.Total
	out.Findings = append(out.Findings, newAnalyzer(dumps, o).findings()...)
	for i := range out.Findings {
		if out.Findings[i].Verdict.Worse(out.Verdict) {
			out.Verdict = out.Findings[i].Verdict
		}
	}
	return out, nil
}

// validate checks that the options fit the number of dumps.
func (o *Options) validate(dumps int) error {
	if len(o.Objects) > 0 && len(o.Objects) != dumps {
		return &OptionError{Field: "Objects", Reason: "must have one number for each dump"}
	}
	for _, n := range o.Objects {
		if n < 0 {
			return &OptionError{Field: "Objects", Reason: "must not be negative"}
		}
	}
	if len(o.Times) > 0 && len(o.Times) != dumps {
		return &OptionError{Field: "Times", Reason: "must have one time for each dump"}
	}
	if !slices.IsSortedFunc(o.Times, time.Time.Compare) {
		return &OptionError{Field: "Times", Reason: "must be in order"}
	}
	return nil
}

// OptionError says which field of [Options] is wrong.
type OptionError struct {
	// Field is the field's name.
	Field string
	// Reason says what is wrong with it.
	Reason string
}

// Error gives "stackmatch: Options.Objects must have one number for each dump".
func (e *OptionError) Error() string { return "stackmatch: Options." + e.Field + " " + e.Reason }
