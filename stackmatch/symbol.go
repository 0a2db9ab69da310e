package stackmatch

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// maxFrames is how many frames of one goroutine are kept. The runtime prints 100, profiles hold up to 1,024.
const maxFrames = 1024

// unescapeSymbol undoes the linker's %2e and its kind in a function's name, and shortens type arguments to "[...]",
// which text dumps print anyway: "gopkg.in/yaml%2ev3.Unmarshal" gives "gopkg.in/yaml.v3.Unmarshal".
func unescapeSymbol(s string) string {
	if strings.IndexByte(s, '%') >= 0 {
		s = unescapePercent(s)
	}
	if strings.IndexByte(s, '[') >= 0 && strings.Count(s, "[...]") != strings.Count(s, "[") {
		s = shortenTypeArguments(s)
	}
	return s
}

func unescapePercent(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func shortenTypeArguments(s string) string {
	var b strings.Builder
	depth := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '[':
			if depth++; depth == 1 {
				b.WriteString("[...]")
			}
		case c == ']' && depth > 0:
			depth--
		case depth == 0:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// functionPart gives the name in "pkg.(*T).Method(0x1, {0x2, ...})" with the bracket that opens the arguments, which is
// the first one that is not a receiver's. ok is false for other lines.
func functionPart(line []byte) (part []byte, ok bool) {
	if !endsCall(line) {
		return nil, false
	}
	for i := 0; ; i++ {
		n := bytes.IndexByte(line[i:], '(')
		if n < 0 || i+n == 0 || line[i+n-1] == ' ' {
			return nil, false
		}
		if i += n; line[i-1] != '.' {
			return line[:i+1], true
		}
	}
}

// endsCall reports whether a line ends with the bracket that closes the arguments of a function.
func endsCall(line []byte) bool {
	if len(line) < 3 || line[len(line)-1] != ')' {
		line = bytes.TrimRight(line, " \t")
	}
	return len(line) >= 3 && line[len(line)-1] == ')'
}

// positionPart gives "/src/a b.go:12" of "\t/src/a b.go:12 +0x1b fp=0xc000 sp=0xc000 pc=0x4711".
// ok is false for lines that are no position.
func positionPart(line []byte) (part []byte, ok bool) {
	line = bytes.TrimLeft(line, " \t")
	colon := bytes.LastIndexByte(line, ':')
	end := skipDigits(line, colon+1)
	if colon < 0 || end == colon+1 || end < len(line) && line[end] != ' ' {
		return nil, false
	}
	return line[:end], true
}

// hasPlace reports whether what follows a position may have another one in it, which [positionPart] would take instead.
func hasPlace(rest []byte) bool { return bytes.IndexByte(rest, ':') >= 0 }

// splitPosition gives the file and line of "/src/a b.go:12".
func splitPosition[text string | []byte](s text) (file text, line int) {
	i := len(s)
	for i > 0 && isDigit(s[i-1]) {
		i--
	}
	if i == 0 || i == len(s) || s[i-1] != ':' {
		return s, 0
	}
	for _, c := range []byte(s[i:]) {
		line = min(line*10+int(c-'0'), maxLineNumber)
	}
	return s[:i-1], line
}

// maxLineNumber bounds the line numbers of hostile input.
const maxLineNumber = 1<<31 - 1

// elidedCount gives N of "...N frames elided...", and 1 for "...additional frames elided...", which names none.
func elidedCount(s string) int {
	digits, _, _ := strings.Cut(strings.TrimPrefix(s, "..."), " ")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 {
		return 1
	}
	return n
}

// trimRuntime leaves out the runtime's frames above and below the program's, as debug=1 does: what parks a goroutine,
// runtime.goexit and runtime.main. A stack that has no others keeps them.
func trimRuntime(frames []frame.Frame) []frame.Frame {
	end := len(frames)
	for end > 0 && isRuntimeRoot(frames[end-1].Function) {
		end--
	}
	start := 0
	for start < end && isRuntime(frames[start].Function) {
		start++
	}
	if start < end {
		return frames[start:end]
	}
	if n := len(frames); n > 1 && frames[n-1].Function == "runtime.goexit" {
		return frames[:n-1]
	}
	return frames
}

func isRuntimeRoot(function string) bool {
	return function == "runtime.goexit" || function == "runtime.main"
}

func isRuntime(function string) bool {
	return strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "internal/runtime/")
}
