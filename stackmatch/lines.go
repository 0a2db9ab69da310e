package stackmatch

import (
	"bytes"
	"errors"
	"io"
)

const (
	bufferSize   = 64 << 10
	probeLength  = 1 << 20      // of a line without a dump in it no more is kept
	maxIdleReads = 100          // that give nothing, until a reader counts as stuck
	overlap      = headerWindow // a header may lie across two probes
)

// lineReader cuts an input into lines of any length without copying them.
type lineReader struct {
	r     io.Reader
	buf   []byte
	start int // of what was not returned yet
	end   int
	line  int // number of the line returned last
	max   int
	cut   bool  // the line returned last is not whole, though there may be a dump in it
	bare  bool  // the line returned last is the input's last, and has no line break
	err   error // of r; io.EOF at the end
	size  int64 // bytes read so far
	total int64 // size of the input, 0 when it is not known
	zero  bool  // a NUL byte was seen in a line
}

func newLineReader(r io.Reader, maxLine int) *lineReader {
	return &lineReader{r: r, buf: make([]byte, bufferSize), max: maxLine}
}

// next gives the next line without its line break. It is valid until the next call. ok is false at the end.
func (l *lineReader) next() (line []byte, ok bool) {
	l.cut = false
	scanned := l.start
	for {
		if i := bytes.IndexByte(l.buf[scanned:l.end], '\n'); i >= 0 {
			line = l.buf[l.start : scanned+i]
			l.start = scanned + i + 1
			break
		}
		scanned = l.end - l.start // from here on relative to the start, which fill moves to 0
		if l.err != nil {
			if l.start == l.end {
				return nil, false
			}
			line = l.buf[l.start:l.end]
			l.start = l.end
			l.bare = true
			break
		}
		scanned = l.fill(scanned)
	}
	l.line++
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, true
}

// fill reads more into the buffer and gives the offset where to go on looking for the line's end.
func (l *lineReader) fill(scanned int) int {
	if l.start > 0 {
		copy(l.buf, l.buf[l.start:l.end])
		l.end -= l.start
		l.start = 0
	}
	switch {
	case l.end < len(l.buf):
	case l.end >= l.max, l.end >= probeLength && !isPlace(l.buf[:l.end]):
		l.zero = l.zero || bytes.IndexByte(l.buf[:l.end], 0) >= 0
		if l.end >= l.max {
			l.end = l.max / 2 // keep the front, in which the dump stands
			l.cut = true
		} else {
			copy(l.buf, l.buf[l.end-overlap:l.end])
			l.end = overlap
		}
		scanned = l.end
	default:
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	for range maxIdleReads {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		l.size += int64(n)
		if err != nil {
			l.err = err
			return scanned
		}
		if n > 0 {
			return scanned
		}
	}
	l.err = io.ErrNoProgress
	return scanned
}

// consumed is how many bytes were returned in lines.
func (l *lineReader) consumed() int64 { return l.size - int64(l.end-l.start) }

// failure gives the reading error that ended the input, or nil at its proper end.
func (l *lineReader) failure() error {
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return l.err
}
