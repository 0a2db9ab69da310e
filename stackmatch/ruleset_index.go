package stackmatch

import (
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// index numbers the regular expressions and files each rule under one function, package or expression without which it
// cannot match, the most telling one it has.
func (s *RuleSet) index() {
	s.byFunction = make(map[string][]int)
	s.byPackage = make(map[string][]int)
	s.always = newBitset(len(s.rules))
	s.table.names = make(map[string]*name)
	numbers := make(map[string]int)
	for i := range s.rules {
		c := &s.rules[i]
		for _, p := range c.patterns() {
			s.number(p, numbers)
		}
		function, pkg := c.key()
		c.byExpression = -1
		switch {
		case function != "":
			s.byFunction[function] = append(s.byFunction[function], i)
		case pkg != "":
			s.byPackage[pkg] = append(s.byPackage[pkg], i)
		case c.neededExpression() >= 0:
			c.byExpression = c.neededExpression()
		default:
			s.always.set(i)
		}
	}
}

// number gives a pattern's expression its number, the same for equal ones.
func (s *RuleSet) number(p *compiledPattern, numbers map[string]int) {
	if p.expression == nil {
		return
	}
	n, ok := numbers[p.expression.String()]
	if !ok {
		n = len(s.expressions)
		numbers[p.expression.String()] = n
		s.expressions = append(s.expressions, p.expression)
	}
	p.number = n
}

// patterns gives all patterns of a rule.
func (c *compiledRule) patterns() []*compiledPattern {
	out := []*compiledPattern{&c.leaf, &c.createdBy}
	for _, list := range [][]compiledPattern{c.frames, c.without, c.companions} {
		for i := range list {
			out = append(out, &list[i])
		}
	}
	return out
}

// neededExpression is the number of an expression that must match a function of the stack, or the creator; -1 when there is none.
func (c *compiledRule) neededExpression() int {
	needed := append(slices.Clone(c.frames), c.leaf)
	for i := range needed {
		if needed[i].expression != nil {
			return needed[i].number
		}
	}
	return -1
}

// key gives a function, or else a package, that must be on a stack (or be its creator) for the rule to match.
func (c *compiledRule) key() (function, pkg string) {
	needed := append(slices.Clone(c.frames), c.leaf, c.createdBy)
	for i := range needed {
		if needed[i].exact != "" {
			return needed[i].exact, ""
		}
	}
	for i := range needed {
		if pkg := needed[i].neededPackage(); pkg != "" {
			return "", pkg
		}
	}
	return "", ""
}

// neededPackage gives the package that every name has which the pattern can match; "" when that is not certain.
func (p *compiledPattern) neededPackage() string {
	start := p.prefix
	if p.expression != nil {
		start = anchoredLiteral(p.expression.String())
	}
	// "example.com" may go on with "/app.F", so only a receiver's bracket makes the package certain.
	if !strings.Contains(start, ".(") {
		return ""
	}
	return frame.Package(start)
}

// anchoredLiteral gives the literal text that every match of an expression begins with at the start of the name; "" when
// the expression is not anchored there.
func anchoredLiteral(expression string) string {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return ""
	}
	re = re.Simplify()
	if re.Op != syntax.OpConcat || len(re.Sub) < 2 || re.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	literal := re.Sub[1]
	if literal.Op != syntax.OpLiteral || literal.Flags&syntax.FoldCase != 0 {
		return ""
	}
	return string(literal.Rune)
}

// candidates sets a bit for each rule that can match a stack.
func (s *RuleSet) candidates(words bitset, names []*name, creator *name) bitset {
	n := len(s.always)
	if n <= cap(words) {
		words = words[:n]
	} else {
		words = make(bitset, n)
	}
	words.add(s.always)
	for _, n := range names {
		words.add(n.rules)
	}
	if creator != nil {
		words.add(creator.rules)
	}
	return words
}
