package stackmatch

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// arena keeps many short strings in few allocations.
type arena struct{ chunk strings.Builder }

const arenaChunk = 16 << 10

func (a *arena) put(s []byte) string {
	if a.chunk.Cap()-a.chunk.Len() < len(s) {
		a.chunk = strings.Builder{} // what was put into the old one lives on in its strings
		a.chunk.Grow(max(arenaChunk, len(s)))
	}
	from := a.chunk.Len()
	a.chunk.Write(s)
	return a.chunk.String()[from:]
}

// node is a frame of a text dump below the frames that lead to it from the leaf: goroutines with the same stack end at
// the same node. The raw text is kept, so that the next goroutine of that stack is recognised by comparing bytes.
type node struct {
	parent   *node
	likely   *node // the child seen last
	next     *node // with the same hash
	hash     uint64
	function string
	position string
	frame    frame.Frame
	kind     nodeKind
	elided   int
	depth    int
	end      *ending // not nil when a goroutine ended here
}

type nodeKind uint8

const (
	callNode nodeKind = iota
	creatorNode
	gapNode // "...N frames elided..."
)

// ending is what the goroutines that end at one node have in common.
type ending struct {
	stack     *stack
	createdBy frame.Frame
	elided    int
}

// stack is a distinct stack without parking frames.
type stack struct {
	frames []frame.Frame
	hash   uint64
	next   *stack // with the same hash
	last   *tally // the group seen last with this stack

	// Of a ProfileReader:
	blamed        bool
	root, culprit frame.Frame
	origin        frame.Origin
	age           uint64 // of the profile that had it last
	number        int32  // in that profile
}

// trie holds the nodes of a reader.
type trie struct {
	root    node
	heads   map[uint64]*node // by parent and function
	crowd   map[uint64]*node // by parent, function and position: those whose chain in heads is long
	stacks  map[uint64]*stack
	text    arena
	seed    maphash.Seed
	slab    []node
	endings []ending
	spare   []stack
	frames  []frame.Frame
	scratch []frame.Frame
	count   int
}

func newTrie() *trie {
	return &trie{heads: make(map[uint64]*node, 500), crowd: map[uint64]*node{}, stacks: make(map[uint64]*stack, 100), seed: maphash.MakeSeed()}
}

// guess gives a child of parent that a function line means, or nil. Others of the same function, called from another
// line, follow it in its chain.
func (t *trie) guess(parent *node, kind nodeKind, function []byte) *node {
	n := t.heads[t.hash(parent, function)]
	if n != nil && n.parent == parent && n.kind == kind && n.function == string(function) {
		return n
	}
	return nil
}

func (t *trie) hash(parent *node, function []byte) uint64 {
	return mix(maphash.Bytes(t.seed, function), parent.hash)
}

func (n *node) is(parent *node, kind nodeKind, function, position []byte) bool {
	return n.parent == parent && n.kind == kind && n.position == string(position) && n.function == string(function)
}

// maxChain is how many nodes with one hash are searched one by one. There are more only in hostile input, and those have
// a table of their own.
const maxChain = 16

// child gives the node for a frame below parent, made when it is new.
func (t *trie) child(parent *node, kind nodeKind, function, position []byte) *node {
	hash := t.hash(parent, function)
	length := 0
	for n := t.heads[hash]; n != nil; n = n.next {
		if n.is(parent, kind, function, position) {
			parent.likely = n
			return n
		}
		length++
	}
	table, full := t.heads, mix(hash, maphash.Bytes(t.seed, position))
	if length >= maxChain {
		table, hash = t.crowd, full
		for n := table[hash]; n != nil; n = n.next {
			if n.is(parent, kind, function, position) {
				parent.likely = n
				return n
			}
		}
	}
	n := t.newNode()
	*n = node{
		parent: parent, next: table[hash], hash: full, kind: kind, elided: parent.elided, depth: parent.depth + 1,
		function: t.text.put(function), position: t.text.put(position),
	}
	n.resolve()
	table[hash] = n
	parent.likely = n
	return n
}

// resolve reads the raw text of a new node.
func (n *node) resolve() {
	switch n.kind {
	case callNode:
		n.frame.Function = unescapeSymbol(strings.TrimSuffix(n.function, "("))
	case creatorNode:
		n.frame.Function = unescapeSymbol(n.function)
	case gapNode:
		n.elided += elidedCount(n.function)
	}
	n.frame.File, n.frame.Line = splitPosition(n.position)
}

func (t *trie) newNode() *node {
	if len(t.slab) == 0 {
		t.slab = make([]node, min(max(t.count, 32), 512))
	}
	n := &t.slab[0]
	t.slab = t.slab[1:]
	t.count++
	return n
}

func (t *trie) newEnding() *ending {
	if len(t.endings) == 0 {
		t.endings = make([]ending, min(max(len(t.stacks), 16), 256))
	}
	e := &t.endings[0]
	t.endings = t.endings[1:]
	return e
}

func (t *trie) newStack() *stack {
	if len(t.spare) == 0 {
		t.spare = make([]stack, min(max(len(t.stacks), 16), 256))
	}
	s := &t.spare[0]
	t.spare = t.spare[1:]
	return s
}

// finish gives what a goroutine that ends at n has in common with others that did.
func (t *trie) finish(n *node) *ending {
	if n.end != nil {
		return n.end
	}
	e := t.newEnding()
	e.elided = n.elided
	last := n
	if n.kind == creatorNode {
		e.createdBy, last = n.frame, n.parent
	}
	frames := t.scratch[:0]
	for ; last != nil && last != &t.root; last = last.parent {
		if last.kind == callNode {
			frames = append(frames, last.frame)
		}
	}
	t.scratch = frames
	slices.Reverse(frames)
	e.stack = t.stack(trimRuntime(frames))
	n.end = e
	return e
}

// stack gives the one copy of a stack that all readers of this trie share.
func (t *trie) stack(frames []frame.Frame) *stack {
	hash := stackHash(frames)
	first := t.stacks[hash]
	for s := first; s != nil; s = s.next {
		if equalFrames(s.frames, frames) {
			return s
		}
	}
	s := t.newStack()
	s.frames, s.hash, s.next = t.keep(frames), hash, first
	t.stacks[hash] = s
	return s
}

// keep copies frames to memory that lasts.
func (t *trie) keep(frames []frame.Frame) []frame.Frame {
	if len(frames) == 0 {
		return nil
	}
	if len(t.frames) < len(frames) {
		t.frames = make([]frame.Frame, max(256, len(frames)))
	}
	kept := t.frames[:len(frames):len(frames)]
	t.frames = t.frames[len(frames):]
	copy(kept, frames)
	return kept
}

// equalFrames compares functions and lines, as stackHash does.
func equalFrames(a, b []frame.Frame) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Line != b[i].Line || a[i].Function != b[i].Function {
			return false
		}
	}
	return true
}
