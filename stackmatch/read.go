package stackmatch

import (
	"bytes"
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
	head, plain, err := peek(r)
	if err != nil {
		return nil, err
	}
	if !isGzip(head) {
		return readPlain(plain, head, o, sizeOf(r))
	}
	unzipped, err := gzip.NewReader(plain)
	if err != nil {
		return nil, fmt.Errorf("stackmatch: decompressing: %w", err)
	}
	if head, plain, err = peek(unzipped); err != nil {
		return nil, err
	}
	return readPlain(plain, head, o, 0)
}

// peek reads the first bytes of r and gives them and a reader that gives them again.
func peek(r io.Reader) (head []byte, again io.Reader, err error) {
	head = make([]byte, sniffLength)
	n, err := io.ReadFull(r, head)
	head = head[:n]
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil, nil, ErrEmpty
	case n == 0 && err != nil:
		return nil, nil, fmt.Errorf("stackmatch: reading: %w", err)
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return head, io.MultiReader(bytes.NewReader(head), failing{err}), nil
	}
	return head, io.MultiReader(bytes.NewReader(head), r), nil
}

// failing gives the error that r gave, once more.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func readPlain(r io.Reader, head []byte, o ReadOptions, size int64) ([]*Dump, error) {
	if isProfile(head) {
		d, err := readProfile(r, o)
		if err != nil {
			return nil, err
		}
		return []*Dump{d}, nil
	}
	return readText(r, o, size)
}

// sizeOf gives the number of bytes in r if that is known, else 0. It is only used to make lists large enough at once.
// The first bytes of r have been read already.
func sizeOf(r io.Reader) int64 {
	switch r := r.(type) {
	case interface{ Size() int64 }: // bytes.Reader, strings.Reader
		return r.Size()
	case *os.File:
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return 0
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

func readText(r io.Reader, o ReadOptions, size int64) ([]*Dump, error) {
	t := newTextInput(r, o, size)
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
