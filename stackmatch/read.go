package stackmatch

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// Read reads all of r and gives the dump in it; of several the one with the most goroutines, the first of those equally
// large. The form is found by looking at the bytes: text of runtime.Stack, debug=2 or a crash, debug=1, or a profile,
// any of them compressed with gzip, and text inside log lines, JSON strings and test output.
//
// What cannot be read is left out and listed in [Dump].Errors. An error means that there is no dump at all
// ([ErrEmpty], [ErrNoDump], [ErrBinary], [ErrOtherProfile], [ErrTooLarge]) or that reading r failed; in the latter case
// the dump is what was read until then, and may be nil.
func Read(r io.Reader, o ReadOptions) (*Dump, error) {
	dumps, err := ReadAll(r, o)
	var largest *Dump
	for _, d := range dumps {
		if largest == nil || d.Total > largest.Total {
			largest = d
		}
	}
	return largest, err
}

// ReadFile is [Read] of a file.
func ReadFile(name string, o ReadOptions) (*Dump, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("stackmatch: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%w: %s", ErrDirectory, name)
	}
	return Read(f, o)
}

// ReadAll reads every dump in r, in their order, as [Read] does.
func ReadAll(r io.Reader, o ReadOptions) ([]*Dump, error) {
	o.setDefaults()
	buffered := bufio.NewReaderSize(r, bufferSize)
	head, err := buffered.Peek(sniffLength)
	if len(head) == 0 && err != nil {
		if errors.Is(err, io.EOF) {
			return nil, ErrEmpty
		}
		return nil, fmt.Errorf("stackmatch: reading: %w", err)
	}
	if !isGzip(head) {
		return readPlain(buffered, head, o)
	}
	unzipped, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("stackmatch: decompressing: %w", err)
	}
	inner := bufio.NewReaderSize(unzipped, bufferSize)
	head, err = inner.Peek(sniffLength)
	if len(head) == 0 && err != nil {
		if errors.Is(err, io.EOF) {
			return nil, ErrEmpty
		}
		return nil, fmt.Errorf("stackmatch: decompressing: %w", err)
	}
	return readPlain(inner, head, o)
}

func readPlain(r io.Reader, head []byte, o ReadOptions) ([]*Dump, error) {
	if isProfile(head) {
		d, err := readProfile(r, o)
		if err != nil {
			return nil, err
		}
		return []*Dump{d}, nil
	}
	return readText(r, o)
}

// sniffLength is how many bytes tell the form.
const sniffLength = 16

func isGzip(head []byte) bool {
	return len(head) > 2 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8
}

// isProfile tells a profile by its first field: a sample or period type, which is a short message that begins with its
// own first field. No text begins so: its third byte would be a control character.
func isProfile(head []byte) bool {
	return len(head) > 3 && (head[0] == 0x0a || head[0] == 0x5a) && head[1] < 64 && head[2] == 0x08
}

func readText(r io.Reader, o ReadOptions) ([]*Dump, error) {
	t := newTextInput(r, o)
	t.run()
	err := t.carrier.lines.failure()
	switch {
	case err != nil:
		return t.dumps, fmt.Errorf("stackmatch: reading: %w", err)
	case len(t.dumps) > 0:
		return t.dumps, nil
	case t.other:
		return nil, ErrOtherProfile
	case t.zero || t.carrier.lines.zero:
		return nil, ErrBinary
	case t.blank:
		return nil, ErrEmpty
	}
	return nil, ErrNoDump
}
