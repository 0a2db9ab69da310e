package probes

import (
	"net/url"
	"reflect"
	"runtime"
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// maxSiteDepth bounds the calls of a [Site]. From a round tripper out to the user's own function it takes up to 30.
const maxSiteDepth = 64

// Site is the calls that made something. Taking one costs about 50 ns a call; names are looked up when they are asked for.
// The zero Site is "unknown". A Site is immutable and small.
type Site struct {
	pcs  []uintptr
	hash uint64
}

// CallSite takes the stack of the calling goroutine. skip is how many callers to leave out; 0 starts with the caller of CallSite.
func CallSite(skip int) Site {
	var buf [maxSiteDepth]uintptr
	n := runtime.Callers(skip+2, buf[:])
	pcs := append(make([]uintptr, 0, n), buf[:n]...)
	hash := uint64(14695981039346656037) // FNV-1a over words
	for _, pc := range pcs {
		hash = (hash ^ uint64(pc)) * 1099511628211
	}
	return Site{pcs, hash}
}

// IsZero reports whether the site is unknown.
func (s Site) IsZero() bool { return len(s.pcs) == 0 }

// ID is equal for equal stacks of one process; 0 for the zero Site.
func (s Site) ID() uint64 { return s.hash }

// Frames gives the calls, leaf first, without those of the runtime itself; nil for the zero Site.
func (s Site) Frames() []frame.Frame {
	if s.IsZero() {
		return nil
	}
	out := make([]frame.Frame, 0, len(s.pcs))
	frames := runtime.CallersFrames(s.pcs)
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			out = append(out, frame.Frame{Function: unescape(f.Function), File: f.File, Line: f.Line})
		}
		if !more {
			return out
		}
	}
}

// InSpan reports whether the stack is that of a span's own goroutine: one of the functions that run the user's code as spans
// is on it. It looks the names up, which costs some µs.
func (s Site) InSpan() bool { return belowSpan(s.Frames()) }

// Culprit gives the frame of the stack to blame, zero when there is none. main is the main module's path.
func (s Site) Culprit(main string) frame.Frame {
	f, _, _ := frame.Culprit(s.Frames(), frame.Frame{}, main)
	return f
}

// unescape undoes the linker's %2e in the last element of an import path.
func unescape(function string) string {
	if !strings.Contains(function, "%") {
		return function
	}
	if plain, err := url.PathUnescape(function); err == nil {
		return plain
	}
	return function
}

// FuncCulprit gives the function that a func value holds when it is the user's own, by the rules of [frame.Culprit], and
// zero for anything else: what to blame when a call into it does not return.
func FuncCulprit(f any, main string) frame.Frame {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Func || v.IsNil() {
		return frame.Frame{}
	}
	fn := runtime.FuncForPC(v.Pointer())
	if fn == nil {
		return frame.Frame{}
	}
	file, line := fn.FileLine(fn.Entry())
	stack := []frame.Frame{{Function: strings.TrimSuffix(unescape(fn.Name()), "-fm"), File: file, Line: line}}
	culprit, _, _ := frame.Culprit(stack, frame.Frame{}, main)
	return culprit
}
