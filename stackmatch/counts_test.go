package stackmatch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/stackmatch"
)

func TestCounts(t *testing.T) {
	d := read(t, `goroutine profile: total 14
7 @ 0x47c08e 0x45a0a5 0x8c7cf7 0x4831c1
# labels: {"controller":"app", "quoted \"key\"":"}"}
#	0x8c7cf6	main.(*T).wait+0x1		/src/with space/a.go:5

2 @ 0x47c08e 0x41608e 0x415bb2 0x947bce 0x4831c1
#	0x947bcd	testing.(*T).Run+0xab	/usr/local/go/src/testing/testing.go:1750

3 @ 0x47c08e 0x41608e 0x415bb2 0x957bce 0x4831c1
#	0x957bcd	gopkg.in/yaml%2ev3.f[go.shape.int]+0xab	/src/y.go:7

1 @ 0x4911c1

1 @ 0x47c08e 0x4911c1
#	0x4911c0	_cgoexp_0123_callback+0x1f	_cgo_gotypes.go:66

`)
	if d.Total != 14 || d.Announced != 14 || d.Truncated || len(d.Errors) > 0 || d.Goroutines != nil {
		t.Errorf("%+v", d)
	}
	type row struct {
		count                    int
		leaf, file, reason, note string
	}
	want := []row{
		{7, "main.(*T).wait", "/src/with space/a.go", "select", "app"},
		{3, "gopkg.in/yaml.v3.f[...]", "/src/y.go", "chan receive", ""},
		{2, "testing.(*T).Run", "/usr/local/go/src/testing/testing.go", "chan receive", ""},
		{1, "", "", "", ""},
		{1, "_cgoexp_0123_callback", "_cgo_gotypes.go", "", ""},
	}
	var got []row
	for _, g := range d.GroupBy("") {
		r := row{count: g.Count, reason: g.WaitReason}
		if len(g.Stack) > 0 {
			r.leaf, r.file = g.Stack[0].Function, g.Stack[0].File
		}
		r.note, _ = g.Label("controller")
		got = append(got, r)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCountsDamaged(t *testing.T) {
	tests := []struct {
		name, input string
		total       int
		truncated   bool
		errors      []stackmatch.ReadError
	}{
		{"cut off", "goroutine profile: total 5\n2 @ 0x1 0x2\n#\t0x1\tmain.f+0x1\t/a.go:1\n\n3 @ 0x1", 5, false, nil},
		{"records missing", "goroutine profile: total 5\n2 @ 0x1 0x2\n#\t0x1\tmain.f+0x1\t/a.go:1\n", 2, true, nil},
		{"damaged address", "goroutine profile: total 2\n2 @ 0x1 zzz 0x2\n#\t0x1\tmain.f+0x1\t/a.go:1\n", 2, false, []stackmatch.ReadError{{Line: 2, Message: "an address of the stack is damaged"}}},
		{"no position", "goroutine profile: total 2\n2 @ 0x1\n#\t0x1\tmain.f+0x1\t/a.go\n", 2, false, []stackmatch.ReadError{{Line: 3, Message: "the function has no file and line behind it"}}},
		{"no address", "goroutine profile: total 2\n2 @ 0x1\n#\tmain.f\n", 2, false, []stackmatch.ReadError{{Line: 3, Message: "a frame has no address"}}},
		{"labels cut off", "goroutine profile: total 2\n2 @ 0x1\n# labels: {\"k\":\"v\n#\t0x1\tmain.f+0x1\t/a.go:1\n", 2, false, []stackmatch.ReadError{{Line: 3, Message: "the labels are cut off"}}},
		{"huge counts", "goroutine profile: total 99999999999999999999\n99999999999999999999 @ 0x1\n#\t0x1\tmain.f+0x1\t/a.go:1\n", 1 << 40, false, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := read(t, test.input)
			if d.Total != test.total || d.Truncated != test.truncated {
				t.Errorf("total %d, truncated %v, want %d, %v", d.Total, d.Truncated, test.total, test.truncated)
			}
			if diff := cmp.Diff(test.errors, d.Errors); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
