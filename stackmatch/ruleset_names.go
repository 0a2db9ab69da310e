package stackmatch

import (
	"sync"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// maxNames bounds how many functions a rule set remembers. A program has a few thousand that can stand on a parked
// goroutine's stack; beyond the bound each look costs what the first one does.
const maxNames = 8192

// name is what a rule set knows of one function: all that depends on nothing but its name, so that looking at the same
// stacks again and again costs a map access for each frame.
type name struct {
	plain string
	waits bool   // it is part of how goroutines wait, see waitsItself
	hits  bitset // expressions that match it
	rules bitset // rules that need it or its package
}

// nameTable remembers functions. The table only ever holds what can be computed from the set, so it does not make the set
// mutable for its users.
type nameTable struct {
	mu    sync.RWMutex
	names map[string]*name
}

// appendInfo appends what is known of a stack's functions.
func (s *RuleSet) appendInfo(out []*name, stack []frame.Frame) []*name {
	missing := false
	s.table.mu.RLock()
	for i := range stack {
		n := s.table.names[stack[i].Function]
		missing = missing || n == nil
		out = append(out, n)
	}
	s.table.mu.RUnlock()
	if !missing {
		return out
	}
	base := len(out) - len(stack)
	for i := range stack {
		if out[base+i] == nil {
			out[base+i] = s.learn(stack[i].Function)
		}
	}
	return out
}

// info gives what is known of one function; nil for "".
func (s *RuleSet) info(function string) *name {
	if function == "" {
		return nil
	}
	s.table.mu.RLock()
	n := s.table.names[function]
	s.table.mu.RUnlock()
	if n == nil {
		n = s.learn(function)
	}
	return n
}

// learn computes what a set knows of a function and remembers it while there is room.
func (s *RuleSet) learn(function string) *name {
	n := &name{plain: plainName(function)}
	n.waits = waitsItself(n.plain)
	n.hits = newBitset(len(s.expressions))
	for i, e := range s.expressions {
		if e.MatchString(n.plain) {
			n.hits.set(i)
		}
	}
	n.rules = newBitset(len(s.rules))
	for _, i := range s.byFunction[n.plain] {
		n.rules.set(i)
	}
	for _, i := range s.byPackage[frame.Package(n.plain)] {
		n.rules.set(i)
	}
	for i := range s.rules {
		if s.rules[i].byExpression >= 0 && n.hits.has(s.rules[i].byExpression) {
			n.rules.set(i)
		}
	}
	s.table.mu.Lock()
	if len(s.table.names) < maxNames {
		s.table.names[function] = n
	}
	s.table.mu.Unlock()
	return n
}

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// add joins another set of the same size.
func (b bitset) add(other bitset) {
	for i := range other {
		b[i] |= other[i]
	}
}
