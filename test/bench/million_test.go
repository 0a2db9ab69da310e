package bench_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
)

// stream gives the text dump of many goroutines without holding it.
type stream struct {
	block []byte // some goroutines, whose first line's number is the same for all
	left  int    // how often it is still to come
	at    int
}

func (s *stream) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.block[s.at:])
	if s.at += n; s.at == len(s.block) {
		s.at = 0
		s.left--
	}
	return n, nil
}

// BenchmarkMillion reads a dump of a million goroutines into groups as it comes. Its memory is that of a thousand.
func BenchmarkMillion(b *testing.B) {
	const perBlock = 1000
	block := append(dump(perBlock), '\n')
	for i := range block { // every goroutine is number 0, which no dump ends at
		if i >= 10 && string(block[i-10:i]) == "goroutine " && block[i] != ' ' && (i < 13 || string(block[i-13:i-10]) != "in ") {
			for j := i; block[j] >= '0' && block[j] <= '9'; j++ {
				block[j] = '0'
			}
		}
	}
	for _, n := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			b.SetBytes(int64(n / perBlock * len(block)))
			b.ReportAllocs()
			for b.Loop() {
				d, err := stackmatch.Read(&stream{block: block, left: n / perBlock}, stackmatch.ReadOptions{GroupsOnly: true})
				if err != nil || d.Total != n {
					b.Fatalf("%d goroutines, error %v", d.Total, err)
				}
			}
		})
	}
}
