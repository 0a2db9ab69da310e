package stackmatch

import (
	"math/bits"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// index files each rule under one function or package without which it cannot match, the most telling one it has.
func (s *RuleSet) index() {
	s.byFunction = make(map[string][]int)
	s.byPackage = make(map[string][]int)
	for i := range s.rules {
		function, pkg := s.rules[i].key()
		switch {
		case function != "":
			s.byFunction[function] = append(s.byFunction[function], i)
		case pkg != "":
			s.byPackage[pkg] = append(s.byPackage[pkg], i)
		default:
			s.always = append(s.always, i)
		}
	}
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
func (s *RuleSet) candidates(words []uint64, names []string, creator string) []uint64 {
	n := (len(s.rules) + 63) / 64
	if n <= cap(words) {
		words = words[:n]
	} else {
		words = make([]uint64, n)
	}
	set := func(list []int) {
		for _, i := range list {
			words[i/64] |= 1 << (i % 64)
		}
	}
	set(s.always)
	for _, name := range names {
		set(s.byFunction[name])
		if len(s.byPackage) > 0 {
			set(s.byPackage[frame.Package(name)])
		}
	}
	if creator != "" {
		set(s.byFunction[creator])
		set(s.byPackage[frame.Package(creator)])
	}
	return words
}

func trailingZeros(word uint64) int { return bits.TrailingZeros64(word) }
