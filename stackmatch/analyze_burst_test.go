package stackmatch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
)

// senders is a dump of n goroutines that are parked in a send, with ids from first on.
func senders(t *testing.T, first, n int) *stackmatch.Dump {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "goroutine %d [chan send]:\nexample.com/op/fan.Start.func1(0x1)\n\t/workspace/fan/fan.go:17 +0x1d\n"+
			"created by example.com/op/fan.Start in goroutine 1\n\t/workspace/fan/fan.go:11 +0x9f\n\n", first+i)
	}
	dumps, err := stackmatch.ReadAll(strings.NewReader(b.String()), stackmatch.ReadOptions{})
	if err != nil || len(dumps) != 1 {
		t.Fatalf("got %d dumps, error %v", len(dumps), err)
	}
	return dumps[0]
}

// TestAnalyzeBurst checks that senders of which the old ones are gone are a burst, as a fan-out of short work makes.
func TestAnalyzeBurst(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first int // id of the first goroutine of the second dump
		want  stackmatch.Verdict
	}{
		{"the old ones are still there", 100, stackmatch.VerdictLeak},
		{"the old ones are gone", 9000, stackmatch.VerdictSuspect},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, err := stackmatch.Analyze([]*stackmatch.Dump{senders(t, 100, 30), senders(t, tc.first, 70)}, stackmatch.Options{})
			if err != nil || a.Verdict != tc.want || len(a.Findings) != 1 || a.Findings[0].Rule != "GOR-511" {
				t.Errorf("got %s, %+v, error %v, want %s by GOR-511", a.Verdict, a.Findings, err, tc.want)
			}
		})
	}
}
