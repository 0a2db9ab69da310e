package probes_test

import (
	"math"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/probes"
)

func TestSpanIDRoundTrip(t *testing.T) {
	for _, id := range []probes.SpanID{
		{Seq: 1},
		{Seq: 35, Object: 36},
		{Seq: 36, Object: 35},
		{Seq: 1022672, Object: 123456},
		{Seq: math.MaxUint64, Object: math.MaxUint64},
		{Seq: 1 << 40, Object: 0},
	} {
		got, ok := probes.ParseSpanID(id.String())
		if !ok || got != id {
			t.Errorf("ParseSpanID(%q) = %v, %v, want %v, true", id.String(), got, ok, id)
		}
	}
}

func TestParseSpanID(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  probes.SpanID
		ok    bool
	}{
		{"lx3k.2n9c", probes.SpanID{Seq: 1022672, Object: 123456}, true},
		{"1.0", probes.SpanID{Seq: 1}, true},
		{"3w5e11264sgsf.3w5e11264sgsf", probes.SpanID{Seq: math.MaxUint64, Object: math.MaxUint64}, true},
		{"3w5e11264sgsg.1", probes.SpanID{}, false}, // one more than 64 bits hold
		{"zzzzzzzzzzzzz.1", probes.SpanID{}, false},
		{"", probes.SpanID{}, false},
		{".", probes.SpanID{}, false},
		{"1", probes.SpanID{}, false},
		{"1.", probes.SpanID{}, false},
		{".1", probes.SpanID{}, false},
		{"0.1", probes.SpanID{}, false},
		{"01.1", probes.SpanID{}, false},
		{"1.01", probes.SpanID{}, false},
		{"+1.1", probes.SpanID{}, false},
		{"A.1", probes.SpanID{}, false},
		{"1.1.1", probes.SpanID{}, false},
		{"1 .1", probes.SpanID{}, false},
		{strings.Repeat("1", 14) + ".1", probes.SpanID{}, false},
	} {
		got, ok := probes.ParseSpanID(tt.value)
		if got != tt.want || ok != tt.ok {
			t.Errorf("ParseSpanID(%q) = %v, %v, want %v, %v", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzParseSpanID(f *testing.F) {
	for _, s := range []string{"lx3k.2n9c", "1.0", "", ".", "3w5e11264sgsf.3w5e11264sgsg", "-1.2", "a.b.c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		id, ok := probes.ParseSpanID(value)
		if ok && id.String() != value {
			t.Errorf("ParseSpanID(%q) gives %v, which is written %q", value, id, id.String())
		}
		if !ok && id != (probes.SpanID{}) {
			t.Errorf("ParseSpanID(%q) gives %v and false, want a zero SpanID", value, id)
		}
		if ok && id.Seq == 0 {
			t.Errorf("ParseSpanID(%q) gives a span without a number", value)
		}
	})
}
