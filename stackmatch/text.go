package stackmatch

import (
	"bytes"
	"slices"
	"time"
)

var (
	createdWord     = []byte("created by ")
	inGoroutineWord = []byte(" in goroutine ")
	ancestorWord    = []byte("[originating from goroutine ")
	minutesWord     = []byte(" minutes")
	systemWord      = []byte("runtime stack:")
)

// textReader reads the text form line by line: of [runtime.Stack], debug=2 and crashes.
type textReader struct {
	options ReadOptions
	lines   *lineReader
	trie    *trie
	dump    *Dump
	done    []*Dump
	tallies tallies
	reasons map[string]string
	labels  labelTable
	set     *labelSet // of the current goroutine, nil for none
	ids     idSet

	open    bool       // a goroutine is being read
	skip    bool       // its rest is not of interest: ancestors' frames
	current *Goroutine // the one being read, in the dump's list or, with GroupsOnly, in scratch
	scratch Goroutine
	at      *node // the frame read last

	pending     nodeKind // of the function line read last, whose position comes next
	hasPending  bool
	predicted   *node  // the child that the pending line has named, if it was the likely one
	function    []byte // the pending function otherwise; a copy
	pendingLine int

	hidden  bool // its stack cannot be printed, so that it has none is no error
	blank   bool // the line before was empty
	broken  bool // the last line of the input is inside a goroutine, has no line break, and cannot be read
	running bool // the dump's first goroutine is the one that took it
	junk    bool // other text was seen since the last goroutine ended
}

func newTextReader(o ReadOptions, t *trie, l *lineReader) *textReader {
	return &textReader{options: o, lines: l, trie: t, reasons: map[string]string{}, blank: true}
}

// line takes one line; number is where it stands in the input. It reports whether the line belongs to a dump.
func (p *textReader) line(line []byte, number int) bool {
	if len(line) == 0 {
		p.endGoroutine(false)
		p.blank = true
		return false
	}
	used := p.content(line, number)
	p.blank = false
	p.broken = p.open && !used && p.lines.bare
	return used
}

func (p *textReader) content(line []byte, number int) bool {
	if line[0] == 'g' {
		if id, state, ok := p.known(line); ok {
			p.begin(id, state, number)
			return true
		}
		if h, ok := parseHeader(line); ok {
			p.header(&h, number)
			return true
		}
	}
	if !p.open {
		p.junk = p.junk || len(bytes.TrimSpace(line)) > 0
		return false
	}
	if p.skip {
		return true
	}
	if p.hasPending && (line[0] == '\t' || line[0] == ' ') && p.position(line) {
		return true
	}
	return p.call(line, number)
}

// call takes a line that names a function, or one of the other lines of a goroutine.
func (p *textReader) call(line []byte, number int) bool {
	if n := p.at.likely; n != nil && n.kind == callNode && !p.hasPending &&
		startsWith(line, n.function) && endsCall(line) {
		p.hasPending, p.pending, p.predicted, p.pendingLine = true, callNode, n, number
		return true
	}
	line = bytes.TrimLeft(line, " \t")
	if len(line) > 0 && line[0] == 'c' && bytes.HasPrefix(line, createdWord) {
		p.flush(nil)
		p.creator(line[len(createdWord):], number)
		return true
	}
	if name, ok := functionPart(line); ok {
		p.flush(nil)
		p.expect(callNode, name, number)
		return true
	}
	return p.other(line)
}

// other takes what is neither a function nor a position.
func (p *textReader) other(line []byte) bool {
	switch {
	case bytes.HasPrefix(line, []byte("...")) && bytes.HasSuffix(line, []byte(" elided...")):
		p.flush(nil)
		if p.at.kind == creatorNode {
			p.current.Elided += elidedCount(string(line))
			break
		}
		p.at = p.trie.child(p.at, gapNode, line, nil)
	case bytes.HasPrefix(line, ancestorWord):
		p.flush(nil)
		p.skip = true
		id, _, _ := bytes.Cut(line[len(ancestorWord):], []byte("]"))
		if n, ok := parseUint(id); ok && p.current.CreatorID == 0 {
			p.current.CreatorID = n
		}
	case bytes.Equal(line, systemWord):
		p.endGoroutine(false)
	case bytes.HasPrefix(line, []byte("goroutine running on other thread")):
		p.hidden = true
	default:
		return false
	}
	return true
}

func (p *textReader) creator(line []byte, number int) {
	if i := bytes.LastIndex(line, inGoroutineWord); i >= 0 {
		if n, ok := parseUint(bytes.TrimSpace(line[i+len(inGoroutineWord):])); ok {
			p.current.CreatorID = n
		}
		line = line[:i]
	}
	p.expect(creatorNode, bytes.TrimSpace(line), number)
}

// expect notes a function whose position comes in the next line.
func (p *textReader) expect(kind nodeKind, function []byte, number int) {
	p.hasPending, p.pending, p.predicted, p.pendingLine = true, kind, nil, number
	if n := p.trie.guess(p.at, kind, function); n != nil {
		p.predicted = n
		return
	}
	p.function = append(p.function[:0], function...)
}

// position takes the line with file and line that follows a function.
func (p *textReader) position(line []byte) bool {
	if n := p.predicted; n != nil {
		if at := line[1:]; n.isAt(at) && !hasPlace(at[len(n.position):]) {
			p.at.likely = n
			p.hasPending, p.at = false, n
			return true
		}
	}
	at, ok := positionPart(line)
	if !ok {
		return false
	}
	p.flush(at)
	return true
}

// flush adds the pending function with its position, which may be missing.
func (p *textReader) flush(position []byte) {
	if !p.hasPending {
		return
	}
	p.hasPending = false
	function := p.function
	if p.predicted != nil {
		function = append(p.function[:0], p.predicted.function...)
		p.function = function
	}
	if position == nil {
		p.dump.fail(p.pendingLine, "the function has no file and line behind it")
	}
	if p.at.kind == creatorNode || p.at.depth >= maxFrames && p.pending == callNode {
		p.current.Elided++
		return
	}
	p.at = p.trie.child(p.at, p.pending, function, position)
}

// known reads a header that has nothing but a wait reason seen before, and perhaps minutes, as most have.
func (p *textReader) known(line []byte) (id uint64, state headerState, ok bool) {
	id, words, ok := headerID(line)
	if !ok || len(words) < 5 || words[0] != ' ' || words[1] != '[' || string(words[len(words)-2:]) != "]:" {
		return 0, state, false
	}
	words = words[2 : len(words)-2]
	if minutes, found := bytes.CutSuffix(words, minutesWord); found {
		if words, state.wait, ok = cutMinutes(minutes); !ok {
			return 0, state, false
		}
	}
	state.word, ok = p.reasons[string(words)]
	return id, state, ok
}

// cutMinutes takes "select, 5" apart.
func cutMinutes(s []byte) (reason []byte, wait time.Duration, ok bool) {
	n, scale := uint64(0), uint64(1)
	i := len(s)
	for i > 0 && isDigit(s[i-1]) && scale < maxMinutes {
		i--
		n += uint64(s[i]-'0') * scale
		scale *= 10
	}
	if i < 3 || s[i-1] != ' ' || s[i-2] != ',' {
		return nil, 0, false
	}
	return s[:i-2], time.Duration(n) * time.Minute, true
}

func (p *textReader) header(h *header, number int) {
	h.word = p.reason(h.reason)
	p.begin(h.id, h.headerState, number)
	if h.labels != nil {
		p.set = p.labels.parse(h.labels)
		p.current.Labels = p.set.labels
	}
	if h.cut {
		p.dump.fail(number, "the goroutine's header is cut off")
	}
}

// begin begins a goroutine.
func (p *textReader) begin(id uint64, h headerState, number int) {
	p.endGoroutine(false)
	running := h.word == "running"
	if p.dump != nil && (p.ids.add(id) && id != 0 || p.startsAnother(running)) { // schedulers' own goroutines are all 0
		p.endDump()
	}
	if p.dump == nil {
		p.dump = &Dump{Format: FormatText, Line: number}
		p.running = running
		p.ids.add(id)
	}
	p.junk = false
	p.open, p.skip, p.hidden, p.at, p.hasPending, p.set = true, false, false, &p.trie.root, false, nil
	p.current = p.slot()
	*p.current = Goroutine{
		ID: id, WaitReason: h.word, Wait: h.wait, Leaked: h.leaked, Locked: h.locked, Durable: h.durable,
		Bubble: h.bubble, Line: number,
	}
}

// startsAnother tells the first goroutine of a further dump in the same input, if its id was not there already: the one
// that takes a dump is running and first, and the empty line is missing that separates goroutines of one dump.
func (p *textReader) startsAnother(running bool) bool {
	return running && p.running && (!p.blank || p.junk)
}

// endGoroutine adds the one being read to the dump; cut tells that the input ended in the middle of it.
func (p *textReader) endGoroutine(cut bool) {
	if !p.open {
		return
	}
	p.open = false
	if cut && (p.hasPending || p.broken || p.at == &p.trie.root) {
		p.dump.Truncated = true
	}
	p.flush(nil)
	e := p.trie.finish(p.at)
	g := p.current
	g.Stack, g.CreatedBy = e.stack.frames, e.createdBy
	g.Elided += e.elided
	d := p.dump
	if len(g.Stack) == 0 && !p.hidden {
		d.fail(g.Line, "the goroutine has no frames")
	}
	t := p.tallies.get(e.stack, p.set)
	p.tallies.add(t, g)
	d.Total++
	if !p.options.GroupsOnly {
		p.tallies.owners = append(p.tallies.owners, t.index)
	}
}

// slot gives the place for the next goroutine. Once some are known the dump's list gets the size that the rest of the
// input will need if it goes on like that, since growing it step by step costs more than reading.
func (p *textReader) slot() *Goroutine {
	if p.options.GroupsOnly {
		return &p.scratch
	}
	list := p.dump.Goroutines
	n := len(list)
	if n == estimateAfter && p.lines.total > 0 {
		share := float64(p.lines.total) / float64(max(p.lines.consumed(), 1))
		list = slices.Grow(list, int(min(share, maxShare)*1.05*float64(n)))
	}
	p.dump.Goroutines = append(list, Goroutine{})
	return &p.dump.Goroutines[n]
}

const (
	estimateAfter = 32
	maxShare      = 1 << 20
)

// endDump finishes the dump being read.
func (p *textReader) endDump() {
	if p.dump == nil {
		return
	}
	p.dump.groups = p.tallies.groups()
	p.done = append(p.done, p.dump)
	p.dump, p.tallies, p.ids = nil, tallies{}, idSet{}
}

// end finishes everything at the end of the input.
func (p *textReader) end() []*Dump {
	p.endGoroutine(true)
	p.endDump()
	done := p.done
	p.done = nil
	return done
}

// reason gives the one copy of a wait reason.
func (p *textReader) reason(s []byte) string {
	if r, ok := p.reasons[string(s)]; ok {
		return r
	}
	r := string(s)
	if len(p.reasons) < maxReasons {
		p.reasons[r] = r
	}
	return r
}

// maxReasons bounds how many wait reasons are remembered.
const maxReasons = 1000

// idSet is a set of goroutine ids. They come in runs, so a word of bits holds 64 of them.
type idSet struct {
	words map[uint64]uint64
	key   uint64 // of the word in hand
	word  uint64
}

// add adds an id and reports whether it was there.
func (s *idSet) add(id uint64) (was bool) {
	if s.words == nil {
		s.words = map[uint64]uint64{}
	}
	if key := id / 64; key != s.key {
		s.words[s.key] = s.word
		s.key, s.word = key, s.words[key]
	}
	bit := uint64(1) << (id % 64)
	was = s.word&bit != 0
	s.word |= bit
	return was
}
