package leaktest

import (
	"context"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/leakguard/leakguard/stackmatch"
)

// Label is the goroutine label that marks what a test has started. Its value is a number, which grows with each marking
// of the process, a space and the name of the test: "2s TestQueue/full".
const Label = "leakguard_test"

// sequence numbers the scopes of the process. Goroutine labels belong to the process, so this must too.
var sequence atomic.Uint64

// scope is what one test has started: every goroutine with its label, and with the labels of its subtests.
type scope struct {
	seq  uint64
	name string
}

func newScope(name string) scope { return scope{seq: sequence.Add(1), name: name} }

// checking labels the goroutine that looks, so that a profile tells it from those that are looked at. No test has number 0.
func checking() { scope{name: "check"}.enter(context.Background()) }

// value is the label's value.
func (s scope) value() string { return strconv.FormatUint(s.seq, 36) + " " + s.name }

// enter labels the calling goroutine and gives a context with the label.
func (s scope) enter(ctx context.Context) context.Context {
	ctx = pprof.WithLabels(ctx, pprof.Labels(Label, s.value()))
	pprof.SetGoroutineLabels(ctx)
	return ctx
}

// parseScope reads a label's value.
func parseScope(value string) (s scope, ok bool) {
	number, name, ok := strings.Cut(value, " ")
	if !ok {
		return scope{}, false
	}
	seq, err := strconv.ParseUint(number, 36, 64)
	return scope{seq: seq, name: name}, err == nil
}

// isChecking reports whether a scope is that of a goroutine that looks.
func (s scope) isChecking() bool { return s.seq == 0 }

// owns reports whether other is s itself or that of one of its subtests. A subtest of the same name in an earlier round
// of -count has a smaller number.
func (s scope) owns(other scope) bool {
	return other.seq == s.seq || other.seq > s.seq && strings.HasPrefix(other.name, s.name+"/")
}

// scopeOf gives the scope that a set of labels names; ok is false when it names none.
func scopeOf(labels []stackmatch.Label) (s scope, ok bool) {
	for _, l := range labels {
		if l.Key == Label {
			return parseScope(l.Value)
		}
	}
	return scope{}, false
}
