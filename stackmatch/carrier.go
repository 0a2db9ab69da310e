package stackmatch

import (
	"bytes"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// carrier takes a dump out of what it stands in: lines with a prefix, such as that of a container runtime or of
// kubectl logs --prefix, and strings with escapes, as in JSON logs, whether the string has the whole dump or a line of it.
type carrier struct {
	lines  *lineReader
	active bool
	fresh  bool   // the first line after the header tells whether every line has the prefix
	prefix []byte // of the header's line; numbers in it may change
	level  int    // how often the text was quoted
	inner  []byte // what is left of the line's quoted text
	whole  bool   // the quoted text has several lines
	finish bool   // the quoted text has ended: an empty line ends its last goroutine
	buffer []byte
}

// next gives the next line of the dump, or any line while none was found.
func (c *carrier) next() (line []byte, ok bool) {
	for {
		if len(c.inner) > 0 || c.finish {
			return c.unquoted(), true
		}
		line, ok = c.lines.next()
		if !ok || !c.active {
			return line, ok
		}
		if line, ok = c.strip(line); ok {
			return line, true
		}
	}
}

// strip takes the prefix off a line. ok is false for a line of something else, and for one whose text was unquoted.
func (c *carrier) strip(line []byte) (rest []byte, ok bool) {
	if _, plain := parseHeader(line); plain {
		c.active = false
		return line, true
	}
	rest, matches := matchPrefix(c.prefix, line)
	fresh := c.fresh
	c.fresh = false
	switch {
	case matches && c.level > 0:
		c.unquote(rest)
		return nil, false
	case matches:
		return rest, true
	case c.whole, fresh && c.level == 0, isPlace(line):
		c.active = false // the prefix was that of the header's line only, or another dump begins
		return line, true
	}
	return nil, false
}

// direct reports whether the lines of the input are those of the dump.
func (c *carrier) direct() bool { return !c.active && len(c.inner) == 0 && !c.finish }

// isPlace reports whether another dump begins in the line.
func isPlace(line []byte) bool {
	_, _, ok := locate(line)
	return ok
}

// unquoted gives the next line of quoted text, and at its end an empty one when it had several.
func (c *carrier) unquoted() []byte {
	if len(c.inner) == 0 {
		c.finish = false
		return nil
	}
	line, rest, _ := bytes.Cut(c.inner, []byte("\n"))
	c.inner = rest
	return bytes.TrimSuffix(line, []byte("\r"))
}

// embedded looks for a dump inside a line that is not part of one, and makes its lines come next.
func (c *carrier) embedded(line []byte) {
	at, level, ok := locate(line)
	if !ok {
		return
	}
	c.prefix = append(c.prefix[:0], line[:at]...)
	c.active, c.fresh, c.level, c.whole = true, true, level, false
	if level == 0 {
		c.buffer = append(c.buffer[:0], line[at:]...)
		c.inner = c.buffer
		return
	}
	c.unquote(line[at:])
}

// unquote undoes the quoting of the text up to its closing quote.
func (c *carrier) unquote(text []byte) {
	c.buffer = append(c.buffer[:0], text...)
	c.inner = c.buffer
	for range c.level {
		c.inner = unescape(c.inner)
	}
	if n := bytes.IndexByte(c.inner, '\n'); n >= 0 && n < len(c.inner)-1 {
		c.whole, c.finish = true, true
	}
	if len(c.inner) == 0 {
		c.finish = true // an empty line of a dump whose lines are quoted one by one
	}
}

// unescape undoes one level of quoting in place, up to the closing quote.
func unescape(s []byte) []byte {
	out := s[:0]
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return out
		case c != '\\' || i+1 == len(s):
			out = append(out, c)
		default:
			i++
			out, i = appendEscape(out, s, i)
		}
	}
	return out
}

// appendEscape decodes the escape whose letter stands at i and gives the offset of its last byte.
func appendEscape(out, s []byte, i int) ([]byte, int) {
	switch s[i] {
	case 'n':
		return append(out, '\n'), i
	case 't':
		return append(out, '\t'), i
	case 'r':
		return append(out, '\r'), i
	case 'u':
		if r, ok := hexDigits(s, i+1, 4); ok {
			return utf8.AppendRune(out, rune(r)), i + 4
		}
	case 'x':
		if r, ok := hexDigits(s, i+1, 2); ok {
			return append(out, byte(r)), i + 2
		}
	}
	return append(out, s[i]), i
}

func hexDigits(s []byte, from, n int) (uint64, bool) {
	if from+n > len(s) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(s[from:from+n]), 16, 32)
	return v, err == nil
}

const (
	maxPlaces    = 1000    // places in one line that are looked at
	headerWindow = 4 << 10 // longest header that is recognised inside a line
)

// locate finds where in a line a dump begins, and how often its text was quoted: 0 for not at all.
func locate(line []byte) (at, level int, ok bool) {
	for range maxPlaces {
		i := bytes.Index(line[at:], goroutineWord)
		if i < 0 {
			return 0, 0, false
		}
		at += i
		window := line[at:min(len(line), at+headerWindow)]
		if level, ok := beginsDump(window); ok {
			return at, level, true
		}
		at += len(goroutineWord)
	}
	return 0, 0, false
}

// beginsDump tells whether s begins with the first line of a dump, quoted or not.
func beginsDump(s []byte) (level int, ok bool) {
	rest := s[len(goroutineWord):]
	if total, found := bytes.CutPrefix(rest, []byte("profile: total ")); found {
		n := skipDigits(total, 0)
		level, ok = quoteLevel(total[n:])
		return level, ok && n > 0
	}
	if len(rest) == 0 || !isDigit(rest[0]) {
		return 0, false
	}
	for i := 1; i < len(s); i++ {
		if s[i] != ':' || s[i-1] != ']' && s[i-1] != '}' {
			continue
		}
		if level, ok = quoteLevel(s[i+1:]); ok {
			return level, isHeader(s[:i+1], level)
		}
	}
	return 0, false
}

// isHeader reports whether s is a goroutine's first line, which cannot be told for sure while it is quoted.
func isHeader(s []byte, level int) bool {
	_, ok := parseHeader(s)
	return ok || level > 0 && bytes.IndexByte(s, '[') > 0
}

// quoteLevel tells from what follows a line how often it was quoted: a line break is "\n" after one time, "\\n" after
// two, "\\\\n" after three, and a closing quote is one, "\"" and "\\\"". ok is false when neither follows.
func quoteLevel(s []byte) (level int, ok bool) {
	n := 0
	for n < len(s) && s[n] == '\\' {
		n++
	}
	switch {
	case n == len(s):
		return 0, n == 0
	case n > 0 && (s[n] == 'n' || s[n] == 'r'):
		return bits.Len(uint(n)), n < 256
	case s[n] == '"':
		return bits.Len(uint(n)) + 1, n < 256
	}
	return 0, false
}

// matchPrefix takes prefix off a line; a number in it matches any number, since time goes on. An empty line may have
// lost the white space at the prefix's end.
func matchPrefix(prefix, line []byte) (rest []byte, ok bool) {
	i, j := 0, 0
	for i < len(prefix) {
		if j == len(line) {
			return nil, len(bytes.TrimSpace(prefix[i:])) == 0
		}
		switch {
		case isDigit(prefix[i]) && isDigit(line[j]):
			i, j = skipDigits(prefix, i), skipDigits(line, j)
		case prefix[i] == line[j]:
			i, j = i+1, j+1
		default:
			return nil, false
		}
	}
	return line[j:], true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func skipDigits(s []byte, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}
