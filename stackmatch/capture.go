package stackmatch

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
)

// ErrNoLeakProfile occurs when the runtime has no goroutineleak profile: before Go 1.27, unless built with
// GOEXPERIMENT=goroutineleakprofile.
var ErrNoLeakProfile = errors.New("stackmatch: this runtime has no goroutineleak profile")

// CaptureProfile writes the goroutine profile of this process to w, compressed, as [ProfileReader] and [Read] take it.
//
// It stops the world for some tens of microseconds however many goroutines there are, and needs one to eight microseconds
// of CPU for each. It has labels and counts, but no goroutine ids, creators and waiting times. It may be called concurrently.
func CaptureProfile(w io.Writer) error {
	if err := pprof.Lookup("goroutine").WriteTo(w, 0); err != nil {
		return fmt.Errorf("stackmatch: capturing the goroutine profile: %w", err)
	}
	return nil
}

const (
	firstDump   = 256 << 10
	defaultDump = 64 << 20
	// usualGoroutine is what a goroutine of an operator takes in a text dump, in bytes, with some reserve.
	usualGoroutine = 2 << 10
)

// CaptureText gives the text dump of all goroutines of this process, and stops the world all that time: 5 to 40
// microseconds for each goroutine, so 50 to 400 milliseconds for 10,000. When its buffer proves too small it takes the
// dump again with one of four times the size, and stops the world again. Nothing periodic may call it.
//
// The dump has at most maxBytes bytes; 0 or less means 64 MiB. truncated tells that it was larger and is cut off.
func CaptureText(maxBytes int) (dump []byte, truncated bool) {
	if maxBytes <= 0 {
		maxBytes = defaultDump
	}
	for size := max(firstDump, runtime.NumGoroutine()*usualGoroutine); ; size *= 4 {
		size = min(size, maxBytes)
		buf := make([]byte, size)
		n := runtime.Stack(buf, true)
		if n < size {
			return buf[:n], false
		}
		if size == maxBytes {
			return buf, true
		}
	}
}

// HasLeakProfile reports whether the runtime has the goroutineleak profile.
func HasLeakProfile() bool { return pprof.Lookup("goroutineleak") != nil }

// CaptureLeaked writes the profile of the goroutines that can never run again to w, compressed, and gives their number.
// It runs a full garbage collection, which stops the world twice for well under a millisecond and takes the CPU of any
// other. The error is [ErrNoLeakProfile] where the runtime cannot.
//
// What it finds is leaked without doubt; what can be reached from a running goroutine or a global variable, it does not
// find. A goroutine that it has marked must never be woken again, for example through a weak pointer: the runtime then
// ends the process with "bad g->status in ready". So production code should ask its user first.
func CaptureLeaked(w io.Writer) (int, error) {
	p := pprof.Lookup("goroutineleak")
	if p == nil {
		return 0, ErrNoLeakProfile
	}
	if err := p.WriteTo(w, 0); err != nil {
		return 0, fmt.Errorf("stackmatch: capturing the goroutineleak profile: %w", err)
	}
	return p.Count(), nil // only WriteTo looks for leaks; Count is what it has found
}
