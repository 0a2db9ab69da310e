package stackmatch_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// model is a goroutine of a made-up dump, and what its group is told by.
type model struct {
	stack, label string
	minutes      int
	reason       string
	leaked       bool
}

// randomDump makes goroutines of few stacks and labels with any minutes and arguments.
func randomDump(r *rand.Rand, n int) (string, []model) {
	var b strings.Builder
	models := make([]model, n)
	for i := range models {
		m := &models[i]
		depth := 1 + r.IntN(4)
		for d := range depth {
			line := 10 + r.IntN(2)
			m.stack += fmt.Sprintf("example.com/app/p%d.(*T).f:%d ", d, line)
		}
		m.minutes = max(0, r.IntN(9)-3)
		m.reason = [...]string{"select", "chan receive"}[min(depth/3, 1)]
		m.leaked = r.IntN(5) == 0
		if r.IntN(3) == 0 {
			m.label = [...]string{"a", "b"}[r.IntN(2)]
		}
		fmt.Fprintf(&b, "goroutine %d [%s", i+1, m.reason)
		if m.leaked {
			b.WriteString(" (leaked)")
		}
		if m.minutes > 0 {
			fmt.Fprintf(&b, ", %d minutes", m.minutes)
		}
		b.WriteString("]")
		if m.label != "" {
			fmt.Fprintf(&b, " {k: %s}", m.label)
		}
		b.WriteString(":\n")
		for call := range strings.FieldsSeq(m.stack) {
			function, line, _ := strings.Cut(call, ":")
			fmt.Fprintf(&b, "%s(0x%x, {0x%x?, ...})\n\t/src/p.go:%s +0x%x\n", function, r.Uint32(), r.Uint32(), line, r.IntN(4000))
		}
		b.WriteString("\n")
	}
	return b.String(), models
}

// TestGroupByModel compares the groups of random dumps with those of a naive count.
func TestGroupByModel(t *testing.T) {
	for round := range uint64(200) {
		r := rand.New(rand.NewPCG(round, 1))
		text, models := randomDump(r, 1+r.IntN(60))
		byKey := map[string][]model{}
		for _, m := range models {
			byKey[m.stack+m.label] = append(byKey[m.stack+m.label], m)
		}
		want := map[string]string{}
		for key, list := range byKey {
			var waits []int
			leaked := 0
			for _, m := range list {
				if m.minutes > 0 {
					waits = append(waits, m.minutes)
				}
				if m.leaked {
					leaked++
				}
			}
			slices.Sort(waits)
			oldest, median := 0, 0
			if len(waits) > 0 {
				oldest, median = waits[len(waits)-1], waits[(len(waits)-1)/2]
			}
			want[key] = fmt.Sprintf("%d %s %d %d %d", len(list), list[0].reason, oldest, median, leaked)
		}
		d := read(t, text)
		got := map[string]string{}
		ids := map[uint64]bool{}
		groups := d.GroupBy("example.com/app")
		for i, g := range groups {
			var stack strings.Builder
			for _, f := range g.Stack {
				fmt.Fprintf(&stack, "%s:%d ", f.Function, f.Line)
			}
			label, _ := g.Label("k")
			got[stack.String()+label] = fmt.Sprintf("%d %s %d %d %d", g.Count, g.WaitReason, g.Oldest/time.Minute, g.Median/time.Minute, g.Leaked)
			ids[g.ID] = true
			if i > 0 && groups[i-1].Count < g.Count {
				t.Errorf("group %d is larger than the one before", i)
			}
			if g.Culprit != g.Stack[0] || g.CulpritOrigin != frame.Main {
				t.Errorf("culprit %v of %v", g.Culprit, g.Stack)
			}
		}
		if !maps.Equal(want, got) || len(ids) != len(groups) {
			t.Fatalf("round %d: %d ids for %d groups (-want +got):\n%s", round, len(ids), len(groups), cmp.Diff(want, got))
		}
		checkRegrouped(t, d)
	}
}

// checkRegrouped groups goroutines as a caller has them who made the dump himself.
func checkRegrouped(t *testing.T, d *stackmatch.Dump) {
	t.Helper()
	made := &stackmatch.Dump{Goroutines: d.Goroutines}
	if diff := cmp.Diff(d.GroupBy("x"), made.GroupBy("x")); diff != "" {
		t.Fatalf("grouped anew (-want +got):\n%s", diff)
	}
}

// TestGroupIDs checks that the id of a group does not change between readings, dumps and versions of this package.
func TestGroupIDs(t *testing.T) {
	a := read(t, "goroutine 1 [select]:\nmain.f(0x1)\n\t/src/a.go:10 +0x1\n").GroupBy("")[0]
	b := read(t, "goroutine 99 [chan receive, 7 minutes]:\nmain.f(0x2, ...)\n\t/other/a.go:10 +0x2\ncreated by main.g\n\t/a.go:1 +0x1\n").GroupBy("")[0]
	c := read(t, "goroutine 1 [select] {k: v}:\nmain.f(0x1)\n\t/src/a.go:10 +0x1\n").GroupBy("")[0]
	d := read(t, "goroutine profile: total 1\n1 @ 0x1 0x2\n#\t0x1\tmain.f+0x1\t/src/a.go:10\n\n").GroupBy("")[0]
	if a.ID != b.ID || a.ID != d.ID {
		t.Errorf("ids %x, %x, %x of one stack", a.ID, b.ID, d.ID)
	}
	if a.ID == c.ID {
		t.Error("labels do not change the id")
	}
	if want := uint64(0); a.ID == want {
		t.Error("id is 0")
	}
}

func TestRootAndCulprit(t *testing.T) {
	const text = `goroutine 1 [select]:
k8s.io/client-go/tools/cache.(*processorListener).pop(0x1)
	/go/pkg/mod/k8s.io/client-go@v0.35.0/tools/cache/shared_informer.go:977 +0x1
k8s.io/apimachinery/pkg/util/wait.(*Group).Start.func1()
	/go/pkg/mod/k8s.io/apimachinery@v0.35.0/pkg/util/wait/wait.go:72 +0x1
created by k8s.io/apimachinery/pkg/util/wait.(*Group).Start in goroutine 5
	/go/pkg/mod/k8s.io/apimachinery@v0.35.0/pkg/util/wait/wait.go:70 +0x1

goroutine 2 [select]:
example.com/app.(*T).loop(0x1)
	/src/app.go:7 +0x1
sync.(*WaitGroup).Go.func1()
	/usr/local/go/src/sync/waitgroup.go:239 +0x1
created by sync.(*WaitGroup).Go in goroutine 5
	/usr/local/go/src/sync/waitgroup.go:237 +0x1

goroutine 3 [IO wait]:
net/http.(*persistConn).readLoop(0x1)
	/usr/local/go/src/net/http/transport.go:2278 +0x1
created by net/http.(*Transport).dialConn in goroutine 5
	/usr/local/go/src/net/http/transport.go:1943 +0x1

goroutine 4 [chan receive]:
k8s.io/client-go/tools/cache.(*Reflector).watchHandler(0x1)
	/r.go:1 +0x1
k8s.io/client-go/tools/cache.(*controller).Run.(*Group).StartWithChannel.func2()
	/w.go:1 +0x1
created by example.com/lib.New in goroutine 5
	/l.go:1 +0x1
`
	type row struct{ root, culprit, origin string }
	want := []row{
		{"k8s.io/client-go/tools/cache.(*processorListener).pop", "", "standard"},
		{"example.com/app.(*T).loop", "example.com/app.(*T).loop", "main"},
		{"net/http.(*persistConn).readLoop", "", "standard"},
		{"k8s.io/client-go/tools/cache.(*Reflector).watchHandler", "example.com/lib.New", "library"},
	}
	var got []row
	for _, g := range read(t, text).GroupBy("example.com/app") {
		got = append(got, row{g.Root.Function, g.Culprit.Function, g.CulpritOrigin.String()})
	}
	if !slices.Equal(want, got) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestFamiliesAlike(t *testing.T) {
	var b bytes.Buffer
	id := 1
	add := func(n int, function, creator string) {
		for range n {
			fmt.Fprintf(&b, "goroutine %d [select]:\n%s(0x1)\n\t/a.go:1 +0x1\ncreated by %s\n\t/b.go:1 +0x1\n\n", id, function, creator)
			id++
		}
	}
	add(12, "example.com/lib.(*Conn).read", "example.com/lib.Dial")
	add(12, "example.com/lib.(*Conn).write", "example.com/lib.Dial")
	add(12, "example.com/app.(*Session).run", "example.com/app.Open")
	add(12, "example.com/app.(*Session).run.func1", "example.com/app.(*Session).run")
	add(12, "example.com/other.f", "example.com/other.g")
	add(9, "example.com/few.f", "example.com/few.New")
	add(9, "example.com/few.g", "example.com/few.New")
	groups := read(t, b.String()).GroupBy("example.com/app")
	var got []string
	for _, f := range stackmatch.Families(groups) {
		got = append(got, fmt.Sprintf("%s: %d of %d groups, %d goroutines", f.Name, f.Count, len(f.Groups), f.Goroutines))
	}
	want := []string{
		"example.com/lib.(*Conn).read: 12 of 2 groups, 24 goroutines",
		"example.com/app.(*Session).run: 12 of 2 groups, 24 goroutines",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
