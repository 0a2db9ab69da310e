package probes

import (
	"strconv"
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

// SpanID tells one span of a process from all others, and what it worked on.
type SpanID struct {
	// Seq grows with each span of the process and is never 0.
	Seq uint64
	// Object is what the span works on; 0 when it was begun without one.
	Object Object
}

// String gives the value of [LabelReconcile].
func (id SpanID) String() string {
	var buf [32]byte
	b := strconv.AppendUint(buf[:0], id.Seq, 36)
	b = append(b, '.')
	return string(strconv.AppendUint(b, uint64(id.Object), 36))
}

// ParseSpanID reads the value of [LabelReconcile]: "lx3k.2n9c" gives Seq 1015940 and Object 124968. ok is false for
// anything that [SpanID.String] does not write.
func ParseSpanID(value string) (id SpanID, ok bool) {
	seq, object, found := strings.Cut(value, ".")
	if !found {
		return SpanID{}, false
	}
	var err error
	if id.Seq, err = strconv.ParseUint(seq, 36, 64); err != nil || id.Seq == 0 {
		return SpanID{}, false
	}
	o, err := strconv.ParseUint(object, 36, 64)
	if err != nil {
		return SpanID{}, false
	}
	id.Object = Object(o)
	return id, true
}
