package memstats

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// textHeap reads the debug=1 form line by line. Its lines are
//
//	heap profile: 52: 1299712 [1953: 5999616] @ heap/1048576
//	12: 113664 [119: 1127168] @ 0xbd40b8 0x247eca3
//	#	0xbd40b7	k8s.io/apimachinery/pkg/runtime.UnsafeObjectConvertor+0x209	/go/pkg/mod/…/codec.go:110
//
//	# runtime.MemStats
//	# HeapAlloc = 33155973
//
// The numbers in front are objects and bytes in use, in brackets those ever allocated, as sampled; the number behind
// "heap/" is twice the rate.
type textHeap struct {
	heap  Heap
	inSum bool // behind "# runtime.MemStats"
	open  bool // a site's frames may follow
}

func readHeapText(data []byte) (*Heap, error) {
	var p textHeap
	number := 0
	for len(data) > 0 {
		line := data
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line, data = data[:i], data[i+1:]
		} else {
			data = nil
		}
		number++
		if err := p.line(strings.TrimRight(string(line), " \r")); err != nil {
			return &p.heap, fmt.Errorf("%w: line %d: %w", ErrHeapProfile, number, err)
		}
	}
	if p.heap.Rate == 0 {
		return &p.heap, fmt.Errorf("%w: line %d: the line \"heap profile:\" is missing", ErrHeapProfile, number)
	}
	return &p.heap, nil
}

func (p *textHeap) line(line string) error {
	switch {
	case line == "":
		p.open = false
	case p.heap.Rate == 0:
		return p.header(line)
	case strings.HasPrefix(line, "# runtime.MemStats"):
		p.inSum, p.open = true, false
	case p.inSum:
		p.stat(line)
	case strings.HasPrefix(line, "#"):
		p.frame(line)
	default:
		return p.site(line)
	}
	return nil
}

// header reads the first line for the rate.
func (p *textHeap) header(line string) error {
	_, rate, ok := strings.Cut(line, "@ heap/")
	if !ok || !strings.HasPrefix(line, "heap profile:") {
		return fmt.Errorf("%q is no header of a heap profile", shorten(line))
	}
	twice, err := strconv.ParseInt(rate, 10, 64)
	if err != nil || twice < 1 {
		return fmt.Errorf("the rate %q is no positive number", shorten(rate))
	}
	p.heap.Rate = max(1, twice/2)
	return nil
}

// site reads "12: 113664 [119: 1127168] @ 0xbd40b8 0x247eca3".
func (p *textHeap) site(line string) error {
	numbers, _, ok := strings.Cut(line, " @")
	inuse, alloc, brackets := strings.Cut(numbers, " [")
	if !ok || !brackets || !strings.HasSuffix(alloc, "]") {
		return fmt.Errorf("%q is neither a site nor a frame", shorten(line))
	}
	objects, size, err := twoNumbers(inuse)
	if err != nil {
		return err
	}
	allObjects, allSize, err := twoNumbers(strings.TrimSuffix(alloc, "]"))
	if err != nil {
		return err
	}
	s := Site{Sampled: objects}
	s.InuseObjects, s.InuseBytes = scaled(objects, size, p.heap.Rate)
	s.AllocObjects, s.AllocBytes = scaled(allObjects, allSize, p.heap.Rate)
	p.heap.Sites = append(p.heap.Sites, s)
	p.open = true
	return nil
}

func scaled(objects, size float64, rate int64) (allObjects, allSize float64) {
	if objects <= 0 {
		return 0, 0
	}
	by := scale(size/objects, rate)
	return objects * by, size * by
}

// twoNumbers reads "12: 113664".
func twoNumbers(s string) (objects, size float64, err error) {
	left, right, ok := strings.Cut(s, ":")
	a, errA := strconv.ParseUint(strings.TrimSpace(left), 10, 63)
	b, errB := strconv.ParseUint(strings.TrimSpace(right), 10, 63)
	if !ok || errA != nil || errB != nil {
		return 0, 0, fmt.Errorf("%q is no pair of objects and bytes", shorten(s))
	}
	return float64(a), float64(b), nil
}

// frame reads "#  0xbd40b7        pkg.Function+0x209      /path/file.go:110"; tabs may be several. Lines of another
// form are notes and are left out.
func (p *textHeap) frame(line string) {
	if !p.open {
		return
	}
	fields := strings.FieldsFunc(line, func(r rune) bool { return r == '\t' })
	if len(fields) < 4 {
		return
	}
	function := strings.TrimSpace(fields[2])
	if i := strings.LastIndex(function, "+0x"); i > 0 {
		function = function[:i]
	}
	f := frame.Frame{Function: function}
	file := strings.TrimSpace(fields[3])
	if i := strings.LastIndexByte(file, ':'); i > 0 {
		if n, err := strconv.Atoi(file[i+1:]); err == nil {
			f.File, f.Line = file[:i], n
		}
	}
	site := &p.heap.Sites[len(p.heap.Sites)-1]
	site.Stack = append(site.Stack, f)
}

// stat reads "# HeapAlloc = 33155973".
func (p *textHeap) stat(line string) {
	name, value, ok := strings.Cut(strings.TrimLeft(line, "# "), " = ")
	if !ok {
		return
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return // PauseNs and others are lists
	}
	switch name {
	case "HeapAlloc":
		p.heap.HeapAlloc = n
	case "TotalAlloc":
		p.heap.TotalAlloc = n
	case "NumGC":
		p.heap.NumGC = n
	}
}

// shorten keeps errors readable when the input is not.
func shorten(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
