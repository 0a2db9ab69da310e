package stackmatch

import "bytes"

// textInput hands the lines of an input to the reader of the form that they belong to.
type textInput struct {
	carrier carrier
	text    *textReader
	counts  countsReader
	dumps   []*Dump
	blank   bool // nothing but white space so far
	other   bool // the input is a profile of something else
	zero    bool // a NUL byte was seen outside dumps
}

func newTextInput(lines *lineReader, o ReadOptions) *textInput {
	t := newTrie()
	return &textInput{
		carrier: carrier{lines: lines},
		text:    newTextReader(o, t, lines), counts: countsReader{trie: t}, blank: true,
	}
}

func (t *textInput) run() {
	for {
		line, ok := t.carrier.next()
		if !ok {
			break
		}
		if t.carrier.lines.cut {
			t.fail("the line is too long, a part of it was skipped")
		}
		t.line(line)
		if t.carrier.lines.bare && isBare(line) {
			t.text.broken = true
		}
		if t.text.open && t.carrier.direct() {
			t.text.follow(t.carrier.lines)
		}
	}
	t.endCounts()
	t.dumps = append(t.dumps, t.text.end()...)
}

// isBare reports whether a position, the last line of the input, may have lost its end: the offset is missing that all
// but inlined calls have.
func isBare(line []byte) bool {
	return len(line) > 0 && line[0] == '\t' && !bytes.Contains(line, []byte(" +0x"))
}

func (t *textInput) line(line []byte) {
	number := t.carrier.lines.line
	if t.counts.dump != nil {
		if t.counts.next(line, number) {
			return
		}
	}
	if t.text.line(line, number) {
		if t.counts.dump != nil {
			t.endCounts()
		}
		return
	}
	if len(line) > 0 && !t.startCounts(line, number) {
		t.outside(line)
	}
}

// startCounts begins a dump of the debug=1 form if the line does.
func (t *textInput) startCounts(line []byte, number int) bool {
	if line[0] != 'g' || !bytes.HasPrefix(line, countsWord) && !bytes.HasPrefix(line, leakCountsWord) {
		return false
	}
	t.endCounts()
	t.dumps = append(t.dumps, t.text.end()...)
	return t.counts.start(line, number)
}

// outside takes a line that is part of no dump, unless one begins in its middle.
func (t *textInput) outside(line []byte) {
	t.blank = t.blank && len(bytes.TrimSpace(line)) == 0
	t.zero = t.zero || bytes.IndexByte(line, 0) >= 0
	t.other = t.other || isOtherProfile(line)
	t.carrier.embedded(line)
}

func (t *textInput) endCounts() {
	if d := t.counts.end(); d != nil {
		t.dumps = append(t.dumps, d)
	}
}

func (t *textInput) fail(message string) {
	if d := t.text.dump; d != nil {
		d.fail(t.carrier.lines.line, message)
	}
}

func isOtherProfile(line []byte) bool {
	for _, prefix := range []string{"heap profile: ", "--- contention:", "--- mutex:", "threadcreate profile: "} {
		if bytes.HasPrefix(line, []byte(prefix)) {
			return true
		}
	}
	return false
}
