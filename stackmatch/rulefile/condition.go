package rulefile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"

	"github.com/leakguard/leakguard/stackmatch"
)

// Bounds of a condition. Costs are in units of CEL's own model: about one for each operation, a tenth for each character.
const (
	// MaxConditionBytes is how long the source of a condition may be.
	MaxConditionBytes = 4096
	// MaxEstimate is the highest cost that a condition may have at worst: on a stack of 128 frames with names of 128
	// characters and 32 labels.
	MaxEstimate = 50_000
	// MaxCost is the cost at which an evaluation is given up.
	MaxCost = 10_000
	// MaxTime is the time after which an evaluation is given up.
	MaxTime = 20 * time.Millisecond

	maxNesting     = 50
	interruptEvery = 100
)

// groupVariable is the name under which conditions see a group.
const groupVariable = "group"

// errPanic is a condition that made the evaluator panic.
var errPanic = errors.New("rulefile: the evaluator panicked")

// compiler compiles conditions.
type compiler struct{ env *cel.Env }

// newCompiler makes the environment of conditions: a group with typed fields, so that typing and type mistakes are found
// when a file is read, and none of CEL's extensions, some of which can make huge values at the cost of one operation.
func newCompiler() (*compiler, error) {
	env, err := cel.NewEnv(
		ext.NativeTypes(reflect.TypeFor[Group](), ext.ParseStructTags(true)),
		cel.Variable(groupVariable, cel.ObjectType("rulefile.Group")),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserRecursionLimit(maxNesting),
		cel.ParserExpressionSizeLimit(MaxConditionBytes),
	)
	if err != nil {
		return nil, fmt.Errorf("rulefile: %w", err)
	}
	return &compiler{env: env}, nil
}

// problem is what is wrong with a condition; line is the one inside its source, from 1, or 0 for the whole of it.
type problem struct {
	line   int
	reason string
}

// lineIn gives the distance of the problem's line from that of the value in the file. Lines of folded text are lost.
func (p problem) lineIn(n *node) int {
	switch {
	case p.line == 0:
		return 0
	case n.Style&literalStyle != 0:
		return p.line
	}
	return 0
}

// compile checks and compiles the condition of a rule.
func (c *compiler) compile(rule, source string) (compiled *condition, problems []problem) {
	defer func() {
		if r := recover(); r != nil {
			compiled, problems = nil, []problem{{reason: fmt.Sprintf("%v: %v", errPanic, r)}}
		}
	}()
	checked, issues := c.env.Compile(source)
	if issues.Err() != nil {
		return nil, explain(issues)
	}
	if got := checked.OutputType(); !got.IsExactType(cel.BoolType) {
		return nil, []problem{{reason: "must say true or false, gives " + got.String()}}
	}
	estimate, err := c.env.EstimateCost(checked, sizes{})
	if err != nil {
		return nil, []problem{{reason: err.Error()}}
	}
	if estimate.Max > MaxEstimate {
		return nil, []problem{{reason: fmt.Sprintf("may cost %s units, more than %d: do not nest loops over frames or labels", units(estimate.Max), MaxEstimate)}}
	}
	program, err := c.env.Program(checked,
		cel.EvalOptions(cel.OptOptimize), cel.CostLimit(MaxCost), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, []problem{{reason: err.Error()}}
	}
	return &condition{rule: rule, program: program, uses: usesOf(checked), grown: grownPredicate()}, nil
}

// units writes a cost; CEL's estimate saturates when it knows no bound.
func units(cost uint64) string {
	if cost > 1<<50 {
		return "any number of"
	}
	return strconv.FormatUint(cost, 10)
}

// undefinedField finds the name in CEL's message about a field that a group does not have.
var undefinedField = regexp.MustCompile(`^undefined field '([^']*)'`)

// explain makes problems of CEL's.
func explain(issues *cel.Issues) []problem {
	var out []problem
	for _, e := range issues.Errors() {
		reason := strings.TrimSpace(e.Message)
		if m := undefinedField.FindStringSubmatch(reason); m != nil {
			reason = fmt.Sprintf("a group has no field %q%s", shorten(m[1]), suggest(m[1], conditionFields()))
		}
		p := problem{reason: reason}
		if e.Location != nil && e.Location.Line() > 0 {
			p.line = e.Location.Line()
			p.reason = fmt.Sprintf("at column %d: %s", e.Location.Column()+1, reason)
		}
		out = append(out, p)
	}
	return out
}

// conditionFields lists the fields that conditions can use.
func conditionFields() []string {
	t := reflect.TypeFor[Group]()
	out := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		out = append(out, t.Field(i).Tag.Get("cel"))
	}
	return out
}

// usesOf finds out which fields of the group a condition reads.
func usesOf(checked *cel.Ast) uses {
	var out uses
	whole := 0 // mentions of the group that are not for one of its fields
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if e.AsIdent() == groupVariable {
				whole++
			}
		case ast.SelectKind:
			if operand := e.AsSelect().Operand(); operand.Kind() == ast.IdentKind && operand.AsIdent() == groupVariable {
				whole--
				out.note(e.AsSelect().FieldName())
			}
		default:
		}
	}))
	if whole != 0 {
		return uses{frames: true, labels: true, slope: true, grown: true}
	}
	return out
}

func grownPredicate() stackmatch.Predicate {
	for _, p := range stackmatch.Predicates() {
		if p.Name == "grown" {
			return p
		}
	}
	return stackmatch.Predicate{}
}

// sizes tells CEL's cost estimate how large the parts of a group can be.
type sizes struct{}

// EstimateSize gives the size of a field or of its elements.
func (sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	size := checker.SizeEstimate{Max: typicalName}
	if len(path) == 2 {
		switch path[1] {
		case "frames":
			size.Max = maxFrames
		case "labels":
			size.Max = maxLabels
		}
	}
	if len(path) == 0 && !element.Type().IsExactType(types.StringType) {
		return nil
	}
	return &size
}

// EstimateCallCost leaves the costs of functions to CEL.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// condition is a compiled condition. It may be used concurrently.
type condition struct {
	rule    string
	program cel.Program
	uses    uses
	grown   stackmatch.Predicate
}

// hook is a condition with the options of the rule set that asks it.
type hook struct {
	*condition

	options Options
}

// when is what the rule set asks.
func (h *hook) when(group *stackmatch.Group, in *stackmatch.Context) bool {
	holds, err := h.holds(group, in, &h.options)
	if err != nil && h.options.Failed != nil {
		h.options.Failed(h.rule, err)
	}
	return holds
}

// holds evaluates the condition within its bounds.
func (c *condition) holds(group *stackmatch.Group, in *stackmatch.Context, o *Options) (holds bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			holds, err = false, fmt.Errorf("%w: rule %s: %v", errPanic, c.rule, r)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), MaxTime)
	defer cancel()
	value, _, err := c.program.ContextEval(ctx, map[string]any{groupVariable: c.view(group, in, o)})
	if err != nil {
		return false, fmt.Errorf("rulefile: rule %s: when: %w", c.rule, err)
	}
	return value == types.True, nil
}
