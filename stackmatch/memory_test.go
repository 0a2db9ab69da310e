package stackmatch_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/leakguard/leakguard/stackmatch"
)

// maxMultiple is what the package's documentation promises: bytes of memory for each byte of the worst input.
const maxMultiple = 64

// fixedMemory is what reading takes whatever the input.
const fixedMemory = 4 << 20

// allocated is how many bytes f allocates, all together, which is more than it holds at any time.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestMemoryBound reads input made to need much memory.
func TestMemoryBound(t *testing.T) {
	repeat := func(n int, line func(i int) string) string {
		var b strings.Builder
		b.WriteString("goroutine 1 [running]:\nmain.a()\n\t/a.go:1 +0x1\n\n")
		for i := range n {
			b.WriteString(line(i))
		}
		return b.String()
	}
	const n = 20_000
	inputs := map[string]string{
		"headers only":             repeat(n, func(i int) string { return fmt.Sprintf("goroutine %d []:\n", i+2) }),
		"far apart ids":            repeat(n, func(i int) string { return fmt.Sprintf("goroutine %d []:\n", i*64) }),
		"one frame each":           repeat(n, func(i int) string { return fmt.Sprintf("goroutine %d [a]:\nf()\n\ta:%d\n\n", i+2, i) }),
		"functions without a file": repeat(1, func(int) string { return "goroutine 2 [a]:\n" + strings.Repeat("f()\n", n) }),
		"different functions": repeat(1, func(int) string {
			return "goroutine 2 [a]:\n" + repeat(n, func(i int) string { return fmt.Sprintf("%x()\n", i) })
		}),
		"stacks of one call more": repeat(200, func(i int) string {
			return fmt.Sprintf("goroutine %d [a]:\n%s\n", i+2, strings.Repeat("f()\n\ta:1\n", i))
		}),
		"different reasons": repeat(n, func(i int) string { return fmt.Sprintf("goroutine %d [%d]:\nf()\n\ta:1\n\n", i+2, i) }),
		"different labels":  repeat(n, func(i int) string { return fmt.Sprintf("goroutine %d [a] {a: %d}:\nf()\n\ta:1\n\n", i+2, i) }),
		"many labels": repeat(10, func(i int) string {
			return fmt.Sprintf("goroutine %d [a] {%s}:\nf()\n\ta:1\n\n", i+2, strings.Repeat("a: b, ", 1000))
		}),
		"different waits": repeat(n, func(i int) string { return fmt.Sprintf("goroutine %d [a, %d minutes]:\nf()\n\ta:1\n\n", i+2, i+1) }),
		"different creators": repeat(n, func(i int) string {
			return fmt.Sprintf("goroutine %d [a]:\nf()\n\ta:1\ncreated by b\n\tb:%d\n\n", i+2, i)
		}),
		"many dumps":    repeat(n, func(int) string { return "goroutine 2 [a]:\nf()\n\ta:1\n\n" }),
		"counts":        "goroutine profile: total 9\n" + repeat(n, func(i int) string { return fmt.Sprintf("1 @ 0x1\n#\t0x1\tf\ta:%d\n\n", i) }),
		"quoted":        strings.Repeat(`{"a":"goroutine 1 [running]:\nmain.a()\n\t/a.go:1 +0x1\n"}`+"\n", n),
		"deeply quoted": strings.Repeat("goroutine 1 [a]:"+strings.Repeat(`\`, 64)+"n", 2000),
	}
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			got := allocated(func() {
				if _, err := stackmatch.ReadAll(strings.NewReader(input), stackmatch.ReadOptions{}); err != nil {
					t.Fatal(err)
				}
			})
			ratio := float64(got) / float64(len(input))
			t.Logf("%d bytes for %d, %.1f × the input", got, len(input), ratio)
			if bound := uint64(len(input)*maxMultiple + fixedMemory); got > bound {
				t.Errorf("%d bytes allocated, want at most %d", got, bound)
			}
		})
	}
}

// repeated gives a block again and again, up to a number of bytes.
type repeated struct {
	block []byte
	left  int
	at    int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.left)], r.block[r.at:])
	r.at = (r.at + n) % len(r.block)
	r.left -= n
	return n, nil
}

// TestNoise reads much of what is no dump in fixed memory.
func TestNoise(t *testing.T) {
	const size = 16 << 20
	random := make([]byte, 1<<20)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(random) // never fails
	letters := bytes.Map(func(r rune) rune { return 'a' + r%26 }, random)
	tests := []struct {
		name  string
		block []byte
		want  error
	}{
		{"random bytes", random, stackmatch.ErrBinary},
		{"zeros", make([]byte, 4096), stackmatch.ErrBinary},
		{"one endless line", letters, stackmatch.ErrNoDump},
		{"lines", []byte("2026-01-01 INFO main.go:12 something happened (again)\n"), stackmatch.ErrNoDump},
		{"the word goroutine", []byte("goroutine goroutine 1 goroutine 1 [goroutine profile: "), stackmatch.ErrNoDump},
		{"line breaks", []byte("\n\r\n \t"), stackmatch.ErrEmpty},
		{"a heap profile", []byte("heap profile: 1: 2 [3: 4] @ heap/1048576\n1: 2 [3: 4] @ 0x1 0x2\n#\t0x1\tmain.f+0x1\t/src/a.go:1\n\n"), stackmatch.ErrOtherProfile},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var err error
			got := allocated(func() { _, err = stackmatch.Read(&repeated{block: test.block, left: size}, stackmatch.ReadOptions{}) })
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if got > 2*fixedMemory {
				t.Errorf("%d bytes allocated for %d of noise, want at most %d", got, size, 2*fixedMemory)
			}
		})
	}
}

// TestManyGoroutines groups a dump that is read as it comes, in memory that does not depend on its length.
func TestManyGoroutines(t *testing.T) {
	block := "goroutine 0 [select, 5 minutes]:\nmain.a(0x1)\n\t/src/a.go:1 +0x1\n\ngoroutine 0 [IO wait, 7 minutes]:\nmain.b(0x1)\n\t/src/b.go:1 +0x1\n\n"
	var got [2]uint64
	for i, n := range []int{1000, 100_000} {
		got[i] = allocated(func() {
			d, err := stackmatch.Read(&repeated{block: []byte(block), left: n / 2 * len(block)}, stackmatch.ReadOptions{GroupsOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			if groups := d.GroupBy(""); d.Total != n || len(groups) != 2 || groups[0].Count != n/2 || d.Goroutines != nil {
				t.Fatalf("%d goroutines in %d groups", d.Total, len(groups))
			}
		})
	}
	if got[1] > got[0]+fixedMemory {
		t.Errorf("%d bytes allocated for 1,000 goroutines, %d for 100,000", got[0], got[1])
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := stackmatch.ReadFile(dir, stackmatch.ReadOptions{}); !errors.Is(err, stackmatch.ErrDirectory) {
		t.Errorf("directory: %v", err)
	}
	if _, err := stackmatch.ReadFile(filepath.Join(dir, "none"), stackmatch.ReadOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := stackmatch.ReadFile(empty, stackmatch.ReadOptions{}); !errors.Is(err, stackmatch.ErrEmpty) {
		t.Errorf("empty file: %v", err)
	}
	boom := errors.New("boom")
	for at := range len(carried) {
		d, err := stackmatch.Read(io.MultiReader(strings.NewReader(carried[:at]), iotest.ErrReader(boom)), stackmatch.ReadOptions{})
		if !errors.Is(err, boom) {
			t.Fatalf("after %d bytes: error %v", at, err)
		}
		if want := strings.Count(carried[:at], "]:\nm") + strings.Count(carried[:at], "}:\nm"); want > 0 && (d == nil || d.Total < want) {
			t.Fatalf("after %d bytes: %+v, want %d goroutines", at, d, want)
		}
	}
	if d, err := stackmatch.Read(iotest.OneByteReader(strings.NewReader(carried)), stackmatch.ReadOptions{}); err != nil || d.Total != 3 {
		t.Errorf("byte by byte: %+v, %v", d, err)
	}
	if _, err := stackmatch.Read(noProgress{}, stackmatch.ReadOptions{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reader that gives nothing: %v", err)
	}
}

type noProgress struct{}

func (noProgress) Read([]byte) (int, error) { return 0, nil }
