package stackmatch

import (
	"errors"
	"strconv"
)

// Format says in which form a dump was written.
type Format uint8

// The forms of a dump.
const (
	// FormatText is the text of [runtime.Stack], of the goroutine profile with debug=2 and of a crash.
	FormatText Format = iota + 1
	// FormatCounts is the text of the goroutine profile with debug=1: stacks with counts, without ids, states and creators.
	FormatCounts
	// FormatProfile is the goroutine profile as a protocol buffer, with or without gzip.
	FormatProfile
)

// String gives "text", "counts", "profile" or "unknown".
func (f Format) String() string {
	switch f {
	case FormatText:
		return "text"
	case FormatCounts:
		return "counts"
	case FormatProfile:
		return "profile"
	}
	return "unknown"
}

// Why no dump can be read. A reading error of the input itself, such as that of a directory, is returned as it is, wrapped.
var (
	// ErrEmpty occurs when the input has no bytes, or nothing but white space.
	ErrEmpty = errors.New("stackmatch: the input is empty")
	// ErrNoDump occurs when the input is text in which no goroutine dump was found.
	ErrNoDump = errors.New("stackmatch: no goroutine dump found in the input")
	// ErrBinary occurs when the input is neither text nor a profile.
	ErrBinary = errors.New("stackmatch: the input is binary and no goroutine profile")
	// ErrOtherProfile occurs when the input is a profile of something else, such as the heap.
	ErrOtherProfile = errors.New("stackmatch: the input is a profile, but not of goroutines")
	// ErrTooLarge occurs when a compressed or binary profile is larger than [ReadOptions].MaxProfile.
	ErrTooLarge = errors.New("stackmatch: the profile is too large")
	// ErrDirectory occurs when a file to read is a directory.
	ErrDirectory = errors.New("stackmatch: is a directory, not a file")
)

// ReadError is something in the input that could not be read. The rest was.
type ReadError struct {
	// Line is where it stands in the input, from 1; 0 for a profile, which has no lines.
	Line int `json:"line"`
	// Message says what is wrong.
	Message string `json:"message"`
}

// Error gives "stackmatch: line 7: …".
func (e ReadError) Error() string {
	if e.Line == 0 {
		return "stackmatch: " + e.Message
	}
	return "stackmatch: line " + strconv.Itoa(e.Line) + ": " + e.Message
}

// maxErrors is how many errors a Dump keeps; the rest is counted.
const maxErrors = 100

// Dump is what one goroutine dump or profile holds.
type Dump struct {
	// Format is the form it was written in.
	Format Format
	// Line is the line of the input where it begins, from 1.
	Line int
	// Goroutines are the goroutines in the order of the dump; nil for forms that only count, and with
	// [ReadOptions].GroupsOnly.
	Goroutines []Goroutine
	// Total is how many goroutines were read. For forms that only count it is the sum of the counts.
	Total int
	// Announced is how many goroutines the dump itself says it has (debug=1 does, in its first line); 0 when it does not.
	Announced int
	// Leaks is set for the runtime's leak profile, in which every goroutine is one that can never run again.
	Leaks bool
	// Truncated is set when the dump was cut off: its last goroutine is incomplete, or fewer were read than announced.
	Truncated bool
	// Errors are the first 100 things that could not be read; nil when all was.
	Errors []ReadError
	// ErrorCount is how many there were.
	ErrorCount int

	groups []Group
}

func (d *Dump) fail(line int, message string) {
	d.ErrorCount++
	if len(d.Errors) < maxErrors {
		d.Errors = append(d.Errors, ReadError{Line: line, Message: message})
	}
}

// ReadOptions says how to read. The zero value reads everything.
type ReadOptions struct {
	// GroupsOnly leaves Dump.Goroutines nil: a dump of a million goroutines then needs memory for its distinct stacks only.
	GroupsOnly bool
	// MaxProfile is the largest size of a profile in bytes, after decompression; 0 means 256 MiB, less than 0 no limit.
	MaxProfile int64
	// MaxLine is the longest line in bytes that is kept whole when a dump stands in it, as in a JSON log; 0 means 256 MiB.
	// Of longer ones the rest is skipped, which is reported in Dump.Errors. Lines without a dump are never kept whole.
	MaxLine int
}

func (o *ReadOptions) setDefaults() {
	if o.MaxProfile == 0 {
		o.MaxProfile = 256 << 20
	}
	if o.MaxLine <= 0 {
		o.MaxLine = 256 << 20
	}
}
