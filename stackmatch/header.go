package stackmatch

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	goroutineWord = []byte("goroutine ")
	labelsWord    = []byte(" labels:{")
)

// header is a goroutine's first line in its parts. The slices point into the line.
type header struct {
	id     uint64
	labels []byte // what stands between the braces
	headerState
	cut bool // the line ends within the header
}

// headerState is what stands in a header's brackets but labels.
type headerState struct {
	word    string // the one copy of reason, when known
	reason  []byte
	wait    time.Duration
	bubble  int
	leaked  bool
	locked  bool
	durable bool
}

// parseHeader reads
//
//	goroutine 45 [chan receive (leaked), 5 minutes, locked to thread, synctest bubble 2] {k: v}:
//
// in all forms from Go 1.4 to 1.27, with words that it does not know left out. ok is false for any other line.
func parseHeader(line []byte) (h header, ok bool) {
	id, rest, ok := headerID(line)
	if !ok {
		return h, false
	}
	h.id = id
	if bytes.HasPrefix(rest, []byte(" gp=")) || bytes.HasPrefix(rest, []byte(" m=")) {
		i := bytes.IndexByte(rest, '[')
		if i < 1 {
			return h, false
		}
		rest = rest[i-1:]
	}
	if len(rest) < 2 || rest[0] != ' ' || rest[1] != '[' {
		return h, false
	}
	rest = rest[2:]
	end := h.bracket(rest)
	if end < 0 {
		h.cut = true
		h.reason = nil
		return h, true
	}
	return h, h.tail(rest[end+1:])
}

// headerID gives the number in "goroutine 45 [select]:", and what follows it.
func headerID(line []byte) (id uint64, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, goroutineWord)
	n := skipDigits(rest, 0)
	for _, c := range rest[:n] {
		id = id*10 + uint64(c-'0')
	}
	return id, rest[n:], ok && n > 0 && n <= 20
}

// bracket reads what stands in the brackets and gives the offset of the closing one, or -1.
func (h *header) bracket(rest []byte) int {
	end := bytes.IndexByte(rest, ']')
	if end < 0 {
		return -1
	}
	state := rest[:end]
	if i := indexLabels(state); i >= 0 { // Go 1.26 with GODEBUG=tracebacklabels=1
		from := i + len(labelsWord)
		n := labelsEnd(rest[from:])
		if n < 0 {
			return -1
		}
		h.labels = rest[from : from+n]
		state = rest[:i]
		closing := bytes.IndexByte(rest[from+n:], ']')
		if closing < 0 {
			return -1
		}
		end = from + n + closing
	}
	h.read(state)
	return end
}

// indexLabels finds " labels:{", which few headers have, behind the brace that few have either.
func indexLabels(state []byte) int {
	if bytes.IndexByte(state, '{') < 0 {
		return -1
	}
	return bytes.Index(state, labelsWord)
}

// tail reads what follows the brackets: ":" or " {labels}:".
func (h *header) tail(rest []byte) bool {
	if len(rest) == 1 && rest[0] == ':' {
		return true
	}
	if after, ok := bytes.CutPrefix(rest, []byte(" {")); ok { // Go 1.27
		n := labelsEnd(after)
		if n < 0 {
			h.cut = true
			return true
		}
		h.labels, rest = after[:n], after[n+1:]
	}
	if len(rest) == 0 {
		h.cut = true
		return true
	}
	return rest[0] == ':' && len(bytes.TrimSpace(rest[1:])) == 0
}

// read reads "select (no cases) (leaked), 5 minutes, locked to thread".
func (h *headerState) read(s []byte) {
	h.reason = s
	if i := bytes.IndexByte(s, ','); i >= 0 {
		h.reason = s[:i]
		for s = s[i+1:]; len(s) > 0; {
			word := s
			if i = bytes.IndexByte(s, ','); i >= 0 {
				word, s = s[:i], s[i+1:]
			} else {
				s = nil
			}
			h.qualifier(bytes.TrimSpace(word))
		}
	}
	for len(h.reason) > 0 && h.reason[len(h.reason)-1] == ')' {
		switch {
		case bytes.HasSuffix(h.reason, []byte(" (leaked)")):
			h.leaked = true
		case bytes.HasSuffix(h.reason, []byte(" (durable)")):
			h.durable = true
		case bytes.HasSuffix(h.reason, []byte(" (scan)")):
		default:
			return
		}
		h.reason = h.reason[:bytes.LastIndexByte(h.reason, ' ')]
	}
}

// maxMinutes keeps a wait inside what a [time.Duration] can hold.
const maxMinutes = 100_000_000

func (h *headerState) qualifier(word []byte) {
	if minutes, ok := bytes.CutSuffix(word, []byte(" minutes")); ok {
		if n, ok := parseUint(minutes); ok {
			h.wait = time.Duration(min(n, maxMinutes)) * time.Minute
		}
		return
	}
	if bytes.Equal(word, []byte("locked to thread")) {
		h.locked = true
		return
	}
	for _, prefix := range []string{"synctest bubble ", "synctest group "} { // Go 1.24 said group
		if len(word) > len(prefix) && string(word[:len(prefix)]) == prefix {
			if n, ok := parseUint(word[len(prefix):]); ok {
				h.bubble = int(min(n, 1<<31-1))
			}
		}
	}
}

// labelsEnd gives the offset of the brace that closes a label list, minding quoted keys and values, or -1.
func labelsEnd(s []byte) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return i
		}
	}
	return -1
}

// parseLabels reads `k: v, "k-2": "v"` or `"k":"v"`, sorted by key; what it cannot read it leaves out.
func parseLabels(s string) []Label {
	var labels []Label
	for s != "" {
		key, rest, ok := labelWord(strings.TrimLeft(s, " ,"), ':')
		if !ok {
			break
		}
		value, after, _ := labelWord(strings.TrimLeft(rest[1:], " "), ',')
		labels = append(labels, Label{Key: strings.Clone(key), Value: strings.Clone(value)})
		s = after
	}
	sortLabels(labels)
	return labels
}

// labelWord takes a quoted or bare word off the front of s, up to a separator; found is false when that is missing.
func labelWord(s string, separator byte) (word, rest string, found bool) {
	if strings.HasPrefix(s, `"`) {
		if quoted, err := strconv.QuotedPrefix(s); err == nil {
			word, _ = strconv.Unquote(quoted)
			s = s[len(quoted):]
			return word, s, s != "" && s[0] == separator
		}
	}
	i := strings.IndexByte(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i:], true
}

func sortLabels(labels []Label) {
	slices.SortStableFunc(labels, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
}

// parseUint reads decimal digits and nothing else; numbers above 2^63 are cut to that.
func parseUint(s []byte) (n uint64, ok bool) {
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n < 1<<59 {
			n = n*10 + uint64(c-'0')
		}
	}
	return n, len(s) > 0
}
