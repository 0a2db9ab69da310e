package probes_test

import (
	"syscall"
	"testing"
	"time"
)

// reportCPU adds the CPU time of the whole process to a benchmark's numbers, its garbage collector included: on a busy
// machine the wall time says little. Call the result when the loop is over.
func reportCPU(b *testing.B) (done func()) {
	b.Helper()
	begin := cpuTime(b)
	return func() {
		b.ReportMetric(float64(cpuTime(b)-begin)/float64(b.N), "cpu-ns/op")
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
