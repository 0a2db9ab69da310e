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
// large. The form is found by looking at the bytes: text of [runtime.Stack], debug=2 or a crash, debug=1, or a profile,
// any of them compressed with gzip, and text inside log lines, JSON strings and test output.
//
// What cannot be read is left out and listed in [Dump].Errors. An error means that there is no dump at all
// ([ErrEmpty], [ErrNoDump], [ErrBinary], [ErrOtherProfile], [ErrTooLarge]) or that reading r failed; in the latter case
// the dump is what was read until then, and may be nil.
func Read(r io.Reader, o ReadOptions) (*Dump, error) {
	return largest(ReadAll(r, o))
}

// largest gives the dump with the most goroutines.
func largest(dumps []*Dump, err error) (*Dump, error) {
	var most *Dump
	for _, d := range dumps {
		if most == nil || d.Total > most.Total {
			most = d
		}
	}
	return most, err
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
	switch {
	case isGzip(head):
		return readGzip(plain, o)
	case isProfile(head):
		return readProfile(plain, o)
	}
	lines := newLineReader(plain, o.MaxLine)
	lines.total = sizeOf(r)
	return readText(lines, o)
}

// ReadBytes is [Read] of a dump in memory, such as one from [CaptureText], without copying it. The result does not keep data.
func ReadBytes(data []byte, o ReadOptions) (*Dump, error) {
	if len(data) == 0 || isGzip(data) || isProfile(data) {
		return Read(bytes.NewReader(data), o)
	}
	o.setDefaults()
	return largest(readText(&lineReader{
		buf: data, end: len(data), size: int64(len(data)), total: int64(len(data)), err: io.EOF, max: o.MaxLine,
	}, o))
}

func readGzip(r io.Reader, o ReadOptions) ([]*Dump, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("stackmatch: decompressing: %w", err)
	}
	head, plain, err := peek(unzipped)
	if err != nil {
		return nil, err
	}
	if isProfile(head) {
		return readProfile(plain, o)
	}
	return readText(newLineReader(plain, o.MaxLine), o)
}

// peek reads the first bytes of r and gives them and a reader that gives them again.
func peek(r io.Reader) (head []byte, again io.Reader, err error) {
	head = make([]byte, sniffLength)
	n := 0
	for idle := 0; n < len(head) && err == nil; {
		var more int
		more, err = r.Read(head[n:])
		n += more
		if idle++; more > 0 {
			idle = 0
		} else if idle == maxIdleReads && err == nil {
			err = io.ErrNoProgress
		}
	}
	head = head[:n]
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil, nil, ErrEmpty
	case n == 0 && err != nil:
		return nil, nil, fmt.Errorf("stackmatch: reading: %w", err)
	case err != nil && !errors.Is(err, io.EOF):
		return head, io.MultiReader(bytes.NewReader(head), failing{err}), nil
	}
	return head, io.MultiReader(bytes.NewReader(head), r), nil
}

// failing gives the error that r gave, once more.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

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

func readText(lines *lineReader, o ReadOptions) ([]*Dump, error) {
	t := newTextInput(lines, o)
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
