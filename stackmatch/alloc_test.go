package stackmatch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
)

// distinctDump makes a dump of n goroutines with that many different stacks, five calls deep, in turn.
func distinctDump(goroutines, stacks int) string {
	var b strings.Builder
	for i := range goroutines {
		kind := i % stacks
		fmt.Fprintf(&b, "goroutine %d [select, %d minutes]:\n", i+1, 1+i%7)
		for call := range 5 {
			fmt.Fprintf(&b, "example.com/app/pkg%d.(*T).f%d(0x%x, {0x%x})\n\t/src/app/pkg%d/file.go:%d +0x1b\n", kind, call, i, i, kind, 10*call+7)
		}
		fmt.Fprintf(&b, "created by example.com/app/pkg%d.New in goroutine 1\n\t/src/app/pkg%d/new.go:7 +0x1\n\n", kind, kind)
	}
	return b.String()
}

// TestAllocations checks that a further goroutine of a known stack allocates nothing, and a further stack less than once.
func TestAllocations(t *testing.T) {
	allocs := func(goroutines, stacks int) float64 {
		data := []byte(distinctDump(goroutines, stacks))
		return testing.AllocsPerRun(5, func() {
			if d, err := stackmatch.ReadBytes(data, stackmatch.ReadOptions{}); err != nil || d.Total != goroutines || len(d.GroupBy("")) != stacks {
				t.Fatalf("%+v, %v", d, err)
			}
		})
	}
	base, more := allocs(2000, 50), allocs(10_000, 50)
	if more > base+30 { // lists that grow
		t.Errorf("%v allocations for 2,000 goroutines, %v for 10,000 with the same stacks", base, more)
	}
	few, many := allocs(2000, 100), allocs(2000, 1000)
	if perStack := (many - few) / 900; perStack > 1 {
		t.Errorf("%.2f allocations for each distinct stack, want at most 1", perStack)
	} else {
		t.Logf("%v allocations for 2,000 goroutines of 50 stacks, %.2f for each further stack", base, perStack)
	}
}
