package stackmatch

import (
	"bytes"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

var (
	countsWord     = []byte("goroutine profile: total ")
	leakCountsWord = []byte("goroutineleak profile: total ")
	labelLineWord  = []byte("# labels: {")
)

// countsReader reads the form of debug=1:
//
//	goroutine profile: total 12
//	3 @ 0x47c08e 0x41608e 0x415bb2 0x947bce 0x4831c1
//	# labels: {"controller":"app"}
//	#	0x947bcd	example.com/app.(*Queue).loop+0xab	/src/app/queue.go:198
//
// The standard library leaves out the runtime's frames at the leaf, so the wait must be read from what is left.
type countsReader struct {
	trie    *trie
	symbols symbolTable
	labels  labelTable

	dump    *Dump
	tallies tallies
	parks   parkTable

	open   bool
	count  int
	line   int // of the record
	set    *labelSet
	pcs    []uint64
	frames []frame.Frame
	hidden int // pcs before the first frame that is printed
}

// start takes the first line of a dump. ok is false for other lines.
func (c *countsReader) start(line []byte, number int) bool {
	rest, leaks := bytes.CutPrefix(line, leakCountsWord)
	if !leaks {
		var ok bool
		if rest, ok = bytes.CutPrefix(line, countsWord); !ok {
			return false
		}
	}
	n, ok := parseUint(bytes.TrimSpace(rest))
	if !ok {
		return false
	}
	c.dump = &Dump{Format: FormatCounts, Line: number, Announced: int(min(n, maxCount)), Leaks: leaks}
	c.tallies, c.parks, c.open = tallies{}, parkTable{}, false
	return true
}

// maxCount keeps hostile counts from overflowing sums.
const maxCount = 1 << 40

// next takes the lines after the first and reports whether it is part of the dump.
func (c *countsReader) next(line []byte, number int) bool {
	line = bytes.TrimRight(line, " \t")
	switch {
	case len(line) == 0:
		c.endRecord()
	case line[0] >= '0' && line[0] <= '9':
		return c.record(line, number)
	case line[0] == '#' && c.open:
		if bytes.HasPrefix(line, labelLineWord) {
			text := line[len(labelLineWord):]
			if n := labelsEnd(text); n >= 0 {
				c.set = c.labels.parse(text[:n])
				return true
			}
			c.dump.fail(number, "the labels are cut off")
			return true
		}
		c.call(line, number)
	default:
		return false
	}
	return true
}

// record takes "3 @ 0x47c08e 0x41608e".
func (c *countsReader) record(line []byte, number int) bool {
	digits, pcs, ok := bytes.Cut(line, []byte(" @"))
	if !ok {
		return false
	}
	n, ok := parseUint(digits)
	if !ok {
		return false
	}
	c.endRecord()
	c.open, c.count, c.line, c.set, c.hidden = true, int(min(n, maxCount)), number, nil, -1
	c.frames, c.pcs = c.frames[:0], c.pcs[:0]
	for len(pcs) > 0 && len(c.pcs) < maxFrames {
		pcs = bytes.TrimLeft(pcs, " ")
		word := pcs
		if i := bytes.IndexByte(pcs, ' '); i >= 0 {
			word, pcs = pcs[:i], pcs[i:]
		} else {
			pcs = nil
		}
		pc, ok := parseHex(word)
		if !ok {
			c.dump.fail(number, "an address of the stack is damaged")
			break
		}
		c.pcs = append(c.pcs, pc)
	}
	return true
}

// call takes "#	0x947bcd	example.com/app.(*Queue).loop+0xab	/src/app/queue.go:198".
func (c *countsReader) call(line []byte, number int) {
	address, rest := nextWord(line[1:])
	name, rest := nextWord(rest)
	pc, ok := parseHex(address)
	if !ok {
		c.dump.fail(number, "a frame has no address")
		return
	}
	if len(name) == 0 {
		return // a frame without a symbol
	}
	if c.hidden < 0 {
		c.hidden = len(c.pcs)
		for i, p := range c.pcs {
			if p == pc || p == pc+1 {
				c.hidden = i
				break
			}
		}
	}
	if i := bytes.LastIndex(name, []byte("+0x")); i > 0 {
		name = name[:i]
	}
	f := frame.Frame{Function: c.symbols.function(name)}
	if position, ok := positionPart(rest); ok {
		var file []byte
		file, f.Line = splitPosition(position)
		f.File = c.symbols.file(file)
	} else {
		c.dump.fail(number, "the function has no file and line behind it")
	}
	if len(c.frames) < maxFrames {
		c.frames = append(c.frames, f)
	}
}

func (c *countsReader) endRecord() {
	if !c.open {
		return
	}
	c.open = false
	if c.count == 0 {
		return
	}
	t := c.tallies.get(c.trie.stack(trimRuntime(c.frames)), c.set)
	t.count += c.count
	if c.dump.Leaks {
		t.leaked += c.count
	}
	c.dump.Total += c.count
	reason := waitReason(c.frames)
	if reason != "" {
		t.reasons = count(t.reasons, reason, c.count)
	} else if len(c.frames) > 0 {
		c.parks.add(t, c.pcs, c.hidden, c.frames[0].Function)
	}
}

// end finishes the dump; nil when none was begun.
func (c *countsReader) end() *Dump {
	d := c.dump
	if d == nil {
		return nil
	}
	c.endRecord()
	c.parks.resolve()
	d.groups = c.tallies.groups()
	if d.Total < d.Announced {
		d.Truncated = true
	}
	c.dump = nil
	return d
}

// nextWord takes a word off the front of s, which begins with white space.
func nextWord(s []byte) (word, rest []byte) {
	s = bytes.TrimLeft(s, " \t")
	if i := bytes.IndexAny(s, " \t"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, nil
}

// parseHex reads "0x47c08e".
func parseHex(s []byte) (n uint64, ok bool) {
	if len(s) < 3 || len(s) > 18 || s[0] != '0' || s[1] != 'x' {
		return 0, false
	}
	for _, c := range s[2:] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}
