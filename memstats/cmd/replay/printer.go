package main

import (
	"bufio"
	"fmt"
	"io"
)

// printer writes formatted text and keeps the first error for flush.
type printer struct {
	w   *bufio.Writer
	err error
}

func newPrinter(w io.Writer) *printer { return &printer{w: bufio.NewWriter(w)} }

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) flush() error {
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}

// say writes to the standard error: when that is gone, nobody is left to tell.
func say(w io.Writer, text string) { _, _ = io.WriteString(w, text) }
