package stackmatch_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
)

func TestCaptureText(t *testing.T) {
	const n = 500
	park(t, n, false)
	text, truncated := stackmatch.CaptureText(0)
	d, err := stackmatch.ReadBytes(text, stackmatch.ReadOptions{})
	if err != nil || truncated {
		t.Fatalf("truncated %v, error %v", truncated, err)
	}
	if d.Total < n || d.Truncated || d.ErrorCount > 0 {
		t.Errorf("%d goroutines, want at least %d; truncated %v, errors %v", d.Total, n, d.Truncated, d.Errors)
	}
	short, truncated := stackmatch.CaptureText(10_000)
	if len(short) != 10_000 || !truncated {
		t.Errorf("%d bytes, truncated %v, want 10,000 and true", len(short), truncated)
	}
}

func TestCaptureProfile(t *testing.T) {
	const n = 100
	park(t, n, true)
	d, err := stackmatch.Read(bytes.NewReader(capture(t)), stackmatch.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labelled := 0
	for _, g := range d.GroupBy("") {
		if _, ok := g.Label("reconcile"); ok {
			labelled += g.Count
		}
	}
	if d.Format != stackmatch.FormatProfile || labelled != n {
		t.Errorf("%v with %d labelled goroutines, want a profile with %d", d.Format, labelled, n)
	}
	if err := stackmatch.CaptureProfile(failingWriter{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v, want %v", err, io.ErrClosedPipe)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestCaptureLeaked leaks a goroutine for good and wants the runtime's proof where there is one.
func TestCaptureLeaked(t *testing.T) {
	var b bytes.Buffer
	if !stackmatch.HasLeakProfile() {
		if _, err := stackmatch.CaptureLeaked(&b); !errors.Is(err, stackmatch.ErrNoLeakProfile) {
			t.Errorf("error %v, want %v", err, stackmatch.ErrNoLeakProfile)
		}
		return
	}
	go leakForGood()
	for range 100 { // until it has stopped
		b.Reset()
		n, err := stackmatch.CaptureLeaked(&b)
		if err != nil {
			t.Fatal(err)
		}
		d, err := stackmatch.Read(bytes.NewReader(b.Bytes()), stackmatch.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range d.GroupBy("github.com/leakguard/leakguard") {
			if g.Root.Function == "github.com/leakguard/leakguard/stackmatch_test.leakForGood" {
				if !d.Leaks || g.Leaked != g.Count || g.WaitReason != "chan receive" || n < 1 {
					t.Errorf("%d leaked, %+v", n, g)
				}
				return
			}
		}
	}
	t.Error("the leaked goroutine was not found")
}

func leakForGood() { <-make(chan struct{}) }
