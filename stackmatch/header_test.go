package stackmatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leakguard/leakguard/stackmatch"
)

// TestHeaderForms reads every form of a goroutine's first line that Go has printed.
func TestHeaderForms(t *testing.T) {
	type g = stackmatch.Goroutine
	tests := []struct {
		name, header string
		want         g
	}{
		{"plain", "goroutine 1 [running]:", g{ID: 1, WaitReason: "running"}},
		{"minutes", "goroutine 7 [chan receive, 5 minutes]:", g{ID: 7, WaitReason: "chan receive", Wait: 5 * time.Minute}},
		{"many minutes", "goroutine 7 [select, 999999999999999999 minutes]:", g{ID: 7, WaitReason: "select", Wait: 100_000_000 * time.Minute}},
		{"locked", "goroutine 17 [syscall, locked to thread]:", g{ID: 17, WaitReason: "syscall", Locked: true}},
		{"minutes and locked", "goroutine 17 [select, 3 minutes, locked to thread]:", g{ID: 17, WaitReason: "select", Wait: 3 * time.Minute, Locked: true}},
		{"nil channel", "goroutine 8 [chan receive (nil chan)]:", g{ID: 8, WaitReason: "chan receive (nil chan)"}},
		{"nil channel, minutes", "goroutine 8 [chan send (nil chan), 12 minutes]:", g{ID: 8, WaitReason: "chan send (nil chan)", Wait: 12 * time.Minute}},
		{"no cases", "goroutine 8 [select (no cases), 2 minutes]:", g{ID: 8, WaitReason: "select (no cases)", Wait: 2 * time.Minute}},
		{"leaked", "goroutine 9 [chan receive (leaked)]:", g{ID: 9, WaitReason: "chan receive", Leaked: true}},
		{"leaked nil channel", "goroutine 9 [chan receive (nil chan) (leaked)]:", g{ID: 9, WaitReason: "chan receive (nil chan)", Leaked: true}},
		{"scan", "goroutine 9 [runnable (scan)]:", g{ID: 9, WaitReason: "runnable"}},
		{"leaked and scan", "goroutine 9 [select (leaked) (scan)]:", g{ID: 9, WaitReason: "select", Leaked: true}},
		{"durable", "goroutine 10 [sleep (durable), synctest bubble 7]:", g{ID: 10, WaitReason: "sleep", Durable: true, Bubble: 7}},
		{"durable wait group", "goroutine 10 [sync.WaitGroup.Wait (durable), 1 minutes, synctest bubble 2]:", g{ID: 10, WaitReason: "sync.WaitGroup.Wait", Wait: time.Minute, Durable: true, Bubble: 2}},
		{"bubble, not durable", "goroutine 10 [IO wait, synctest bubble 7]:", g{ID: 10, WaitReason: "IO wait", Bubble: 7}},
		{"synctest of Go 1.24", "goroutine 10 [select, synctest group 5]:", g{ID: 10, WaitReason: "select", Bubble: 5}},
		{"everything", "goroutine 11 [chan send (leaked) (scan) (durable), 4 minutes, locked to thread, synctest bubble 3] {k: v}:", g{
			ID: 11, WaitReason: "chan send", Wait: 4 * time.Minute, Leaked: true, Durable: true, Locked: true, Bubble: 3,
			Labels: []stackmatch.Label{{Key: "k", Value: "v"}},
		}},
		{"labels of Go 1.26", `goroutine 45 [chan receive labels:{"controller": "ctl", "a": "]}:,"}]:`, g{ID: 45, WaitReason: "chan receive", Labels: []stackmatch.Label{{Key: "a", Value: "]}:,"}, {Key: "controller", Value: "ctl"}}}},
		{"labels of Go 1.26, minutes", `goroutine 45 [select, 9 minutes labels:{"k": "v"}]:`, g{ID: 45, WaitReason: "select", Wait: 9 * time.Minute, Labels: []stackmatch.Label{{Key: "k", Value: "v"}}}},
		{"labels of Go 1.27", `goroutine 30 [chan receive] {controller: ctl, "reconcile-id": "ctl-1"}:`, g{ID: 30, WaitReason: "chan receive", Labels: []stackmatch.Label{{Key: "controller", Value: "ctl"}, {Key: "reconcile-id", Value: "ctl-1"}}}},
		{"escaped labels", `goroutine 30 [select] {"a\"b": "c\\d\n", x: "}:"}:`, g{ID: 30, WaitReason: "select", Labels: []stackmatch.Label{{Key: `a"b`, Value: "c\\d\n"}, {Key: "x", Value: "}:"}}}},
		{"empty label value", `goroutine 30 [select] {a: , b: c}:`, g{ID: 30, WaitReason: "select", Labels: []stackmatch.Label{{Key: "a"}, {Key: "b", Value: "c"}}}},
		{"crash, no thread", "goroutine 12 gp=0xc000002380 m=nil [force gc (idle), 7 minutes]:", g{ID: 12, WaitReason: "force gc (idle)", Wait: 7 * time.Minute}},
		{"crash, thread", "goroutine 12 gp=0xc000002380 m=9 mp=0xc000100008 [running]:", g{ID: 12, WaitReason: "running"}},
		{"crash of Go 1.22", "goroutine 12 m=9 [running]:", g{ID: 12, WaitReason: "running"}},
		{"scheduler", "goroutine 0 [idle]:", g{ID: 0, WaitReason: "idle"}},
		{"large id", "goroutine 18446744073709551615 [select]:", g{ID: 18446744073709551615, WaitReason: "select"}},
		{"words of a later Go", "goroutine 5 [select, 3 minutes, pinned to core 4]:", g{ID: 5, WaitReason: "select", Wait: 3 * time.Minute}},
		{"empty reason", "goroutine 5 []:", g{ID: 5}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			input := "goroutine 3 [running]:\nmain.a()\n\t/src/a.go:1 +0x1\n\n" + test.header + "\nmain.b(0x1)\n\t/src/b.go:2 +0x2\n"
			for _, text := range []string{input, strings.ReplaceAll(input, "\n", "\r\n")} {
				d, err := stackmatch.Read(strings.NewReader(text), stackmatch.ReadOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if len(d.Goroutines) != 2 || len(d.Errors) > 0 {
					t.Fatalf("%d goroutines, errors %v", len(d.Goroutines), d.Errors)
				}
				got := d.Goroutines[1]
				if len(got.Stack) != 1 || got.Stack[0].Function != "main.b" {
					t.Errorf("stack %v", got.Stack)
				}
				if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(g{}, "Stack", "Line")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestNoHeader lists lines that look like a goroutine's first and are not.
func TestNoHeader(t *testing.T) {
	for _, line := range []string{
		"goroutine", "goroutine ", "goroutine 1", "goroutine x [running]:", "goroutine 1[running]:", "goroutine 1 (running):",
		"goroutine 1 [running]: and more", "goroutine running on other thread; stack unavailable", "goroutine -1 [running]:",
		"goroutine 123456789012345678901 [running]:",
	} {
		if d, err := stackmatch.Read(strings.NewReader(line+"\nmain.b(0x1)\n\t/src/b.go:2 +0x2\n"), stackmatch.ReadOptions{}); err == nil {
			t.Errorf("%q is read as %+v", line, d.Goroutines)
		}
	}
}
