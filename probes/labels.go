package probes

import (
	"math/bits"
	"strings"
)

// The goroutine labels of a scope. Their values hold no object names: a crash traceback prints labels.
const (
	// LabelController is the name of the scope, for a reconcile that of its controller.
	LabelController = "leakguard_controller"
	// LabelReconcile is the span within the scope, "<sequence>.<object>", both in base 36.
	LabelReconcile = "leakguard_reconcile"
)

// Object is a hash of what a span works on, for a reconcile its request. The hash is seeded anew in each process, so it
// tells "the same object" and nothing else. 0 is "no object".
type Object uint64

// SpanID tells one span of a process from all others, and what it worked on. With [Scopes.SetLowCardinality] it stands
// for an epoch, which is all spans of a scope that began within a short time, and has no object.
type SpanID struct {
	// Seq grows with each span of the process and is never 0.
	Seq uint64
	// Object is what the span works on; 0 when it was begun without one.
	Object Object
}

// maxDigits is the length of the largest 64-bit number in base 36.
const maxDigits = 13

// digits are those of base 36.
const digits = "0123456789abcdefghijklmnopqrstuvwxyz"

// String gives the value of [LabelReconcile].
func (id SpanID) String() string {
	var buf [2*maxDigits + 1]byte
	i := base36(&buf, len(buf), uint64(id.Object))
	i--
	buf[i] = '.'
	i = base36(&buf, i, id.Seq)
	return string(buf[i:])
}

// base36 writes v so that it ends before end and gives where it starts. It divides by a constant, which strconv cannot:
// that is a tenth of the cost of a span.
func base36(buf *[2*maxDigits + 1]byte, end int, v uint64) int {
	for v >= 36 {
		q := v / 36
		end--
		buf[end] = digits[v-36*q]
		v = q
	}
	end--
	buf[end] = digits[v]
	return end
}

// ParseSpanID reads the value of [LabelReconcile]: "lx3k.2n9c" gives Seq 1022672 and Object 123456. ok is false for
// anything that [SpanID.String] does not write.
func ParseSpanID(value string) (id SpanID, ok bool) {
	for i := range len(value) {
		if value[i] != '.' {
			continue
		}
		seq, okSeq := parse36(value[:i])
		object, okObject := parse36(value[i+1:])
		if !okSeq || !okObject || seq == 0 {
			return SpanID{}, false
		}
		return SpanID{Seq: seq, Object: Object(object)}, true
	}
	return SpanID{}, false
}

// parse36 reads what base36 writes and nothing else: no sign, no upper case, no leading zero, no overflow.
func parse36(s string) (v uint64, ok bool) {
	if s == "" || len(s) > maxDigits || (s[0] == '0' && len(s) > 1) {
		return 0, false
	}
	for i := range len(s) {
		d := strings.IndexByte(digits, s[i])
		if d < 0 {
			return 0, false
		}
		high, low := bits.Mul64(v, 36)
		sum, carry := bits.Add64(low, uint64(d), 0)
		if high != 0 || carry != 0 {
			return 0, false
		}
		v = sum
	}
	return v, true
}
