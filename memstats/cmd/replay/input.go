package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/leakguard/leakguard/memstats"
)

// load reads a file, or the standard input for "-", and decompresses it.
func load(name string, stdin io.Reader) (data []byte, err error) {
	in := stdin
	if name != "-" {
		f, openErr := os.Open(name)
		if openErr != nil {
			return nil, openErr
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		in = f
	}
	if data, err = readBounded(in); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	if data, err = readBounded(r); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return data, nil
}

func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, memstats.MaxTableBytes+1))
	if err == nil && len(data) > memstats.MaxTableBytes {
		err = fmt.Errorf("more than %d bytes", memstats.MaxTableBytes)
	}
	return data, err
}

// isHeap tells a heap profile from a series: its text begins with its name, its binary form is no text.
func isHeap(data []byte) bool {
	head := data[:min(len(data), 512)]
	return bytes.HasPrefix(bytes.TrimLeft(head, " \r\n\t"), []byte("heap profile:")) || bytes.IndexByte(head, 0) >= 0 ||
		len(head) > 0 && head[0] < '\t'
}
