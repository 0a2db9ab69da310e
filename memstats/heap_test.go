package memstats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/memstats"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

const smallHeap = `heap profile: 12: 2016 [30: 5040] @ heap/1048576
12: 2016 [30: 5040] @ 0x1 0x2
#	0x1	time.newTimer+0x10	/go/src/time/sleep.go:10
#	0x2	example.com/app.(*R).Reconcile+0x20	/src/app/r.go:88

# runtime.MemStats
# HeapAlloc = 123456
# NumGC = 7
# PauseNs = [1 2 3]
`

func TestReadHeapText(t *testing.T) {
	t.Parallel()
	h, err := memstats.ReadHeap([]byte(smallHeap))
	if err != nil {
		t.Fatal(err)
	}
	if h.Rate != 524288 || h.HeapAlloc != 123456 || h.NumGC != 7 || len(h.Sites) != 1 {
		t.Fatalf("%+v", h)
	}
	s, by := h.Sites[0], 1/(1-math.Exp(-168.0/524288))
	if !near(s.InuseObjects, 12*by) || !near(s.InuseBytes, 2016*by) || !near(s.AllocBytes, 5040*by) || s.Sampled != 12 {
		t.Errorf("%+v, want 12 objects times %v", s, by)
	}
	want := frame.Frame{Function: "example.com/app.(*R).Reconcile", File: "/src/app/r.go", Line: 88}
	if len(s.Stack) != 2 || s.Stack[1] != want {
		t.Errorf("stack %v", s.Stack)
	}
	if hint := memstats.HintOf(s.Stack); hint.Name != "timer" || hint.Frame.Function != "time.newTimer" {
		t.Errorf("hint %+v", hint)
	}
	if got := memstats.SmallestSeen(168, 524288); math.Abs(got-12_484) > 10 {
		t.Errorf("SmallestSeen = %v, want about 12,484", got)
	}
}

func TestReadHeapErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, data, want string }{
		{"no rate", "heap profile: 1: 2 [3: 4] @ heapx\n", "line 1"},
		{"rate zero", "heap profile: 1: 2 [3: 4] @ heap/0\n", "line 1"},
		{"bad count", "heap profile: 1: 2 [3: 4] @ heap/2\n1: 2 [3: 4] @ 0x1\n\nx: 2 [3: 4] @ 0x1\n", "line 4"},
		{"bad brackets", "heap profile: 1: 2 [3: 4] @ heap/2\n1: 2 [3: @ 0x1\n", "line 2"},
		{"nonsense", "heap profile: 1: 2 [3: 4] @ heap/2\nwhat is this\n", "line 2"},
		{"binary", "\x00\x01\x02", "binary profile"},
		{"empty", "", "binary profile"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := memstats.ReadHeap([]byte(tt.data))
			if !errors.Is(err, memstats.ErrHeapProfile) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want ErrHeapProfile with %q", err, tt.want)
			}
		})
	}
	h, err := memstats.ReadHeap([]byte(smallHeap + "\nheap"))
	if err != nil || len(h.Sites) != 1 {
		t.Errorf("text behind MemStats: %v, %v", h, err)
	}
}

// kept holds what the tests leak.
var kept [][]byte

//go:noinline
func leakBlock(n int) {
	for range n {
		kept = append(kept, make([]byte, 64<<10))
	}
}

func takeHeap(t *testing.T, debug int) *memstats.Heap {
	t.Helper()
	runtime.GC()
	runtime.GC() // the profile is that of the cycle before the last one
	var b bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&b, debug); err != nil {
		t.Fatal(err)
	}
	h, err := memstats.ReadHeap(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHeapGrowthInThisProcess leaks three times 32 MiB in 64 KiB blocks, and finds the site in both forms of the profile.
func TestHeapGrowthInThisProcess(t *testing.T) {
	for _, debug := range []int{0, 1} {
		profiles := []*memstats.Heap{takeHeap(t, debug)}
		for range 3 {
			leakBlock(512)
			profiles = append(profiles, takeHeap(t, debug))
		}
		findings := memstats.JudgeHeap(profiles, memstats.HeapOptions{Main: "github.com/leakguard/leakguard", Every: time.Minute})
		if len(findings) == 0 || findings[0].Verdict != memstats.Leak {
			t.Fatalf("debug=%d: %+v", debug, findings)
		}
		f := findings[0]
		if !strings.HasSuffix(f.Culprit.Function, "memstats_test.leakBlock") && !strings.Contains(f.Stacks[0][0].Function, "leakBlock") {
			t.Errorf("debug=%d: culprit %v, stack %v", debug, f.Culprit, f.Stacks[0])
		}
		growth := memstats.HeapGrowth(profiles, memstats.HeapOptions{Every: time.Minute})
		// The runtime samples one block in 8.5 and scales up: 96 MiB with a standard deviation of sqrt(96 MiB * 512 KiB) = 7 MiB.
		if g := growth[0]; !g.Steady || g.Bytes < 61*mib || g.Bytes > 131*mib || g.BytesPerHour <= 0 {
			t.Errorf("debug=%d: grew by %v bytes (steady %v), want 96 MiB within five standard deviations", debug, g.Bytes, g.Steady)
		}
		kept = nil
	}
}

func TestBlameSite(t *testing.T) {
	t.Parallel()
	stack := func(functions ...string) (all []frame.Frame) {
		for _, f := range functions {
			all = append(all, frame.Frame{Function: f})
		}
		return all
	}
	for _, tt := range []struct {
		name  string
		stack []frame.Frame
		main  string
		want  string
		owner bool
	}{
		{"main module", stack("reflect.New", "github.com/lib/x.New", "example.com/app.Use"), "example.com/app", "example.com/app.Use", true},
		{"library", stack("reflect.New", "k8s.io/client-go/rest.New", "github.com/lib/x.New"), "", "github.com/lib/x.New", true},
		{"metrics allocate for others", stack("github.com/prometheus/client_golang/prometheus.MakeLabelPairs", "github.com/lib/x.Observe"), "", "github.com/lib/x.Observe", true},
		{"vendored", stack("k8s.io/kubernetes/vendor/k8s.io/utils/buffer.NewRing", "k8s.io/kubernetes/pkg/x.Run"), "", "k8s.io/kubernetes/pkg/x.Run", true},
		{"nobody", stack("reflect.New", "k8s.io/client-go/tools/cache.(*Reflector).list"), "", "k8s.io/client-go/tools/cache.(*Reflector).list", false},
		{"standard only", stack("bytes.growSlice", "net/http.Get"), "", "bytes.growSlice", false},
		{"empty", nil, "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := memstats.BlameSite(tt.stack, tt.main); got.Frame.Function != tt.want || got.Owner != tt.owner {
				t.Errorf("%+v, want %s, owner %v", got, tt.want, tt.owner)
			}
		})
	}
}

func TestHintOf(t *testing.T) {
	t.Parallel()
	for function, want := range map[string]string{
		"time.newTimer":                                 "timer",
		"time.AfterFunc":                                "timer",
		"time.NewTicker":                                "ticker",
		"context.withCancel":                            "context-child",
		"context.(*cancelCtx).propagateCancel":          "context-child",
		"context.WithDeadlineCause":                     "context-child",
		"context.WithValue":                             "context-chain",
		"k8s.io/apimachinery/pkg/runtime.(*Scheme).New": "decoded-object",
		"k8s.io/apimachinery/pkg/runtime.(*Scheme).AddKnownTypeWithName":                      "scheme-types",
		"k8s.io/utils/buffer.NewTypedRingGrowing[...]":                                        "listener-ring",
		"k8s.io/client-go/transport.(*tlsTransportCache).get":                                 "transport-cache",
		"k8s.io/client-go/util/workqueue.(*Typed[...]).Get":                                   "workqueue",
		"k8s.io/client-go/util/workqueue.(*TypedItemExponentialFailureRateLimiter[...]).When": "rate-limiter",
		"github.com/prometheus/client_golang/prometheus.(*MetricVec).GetMetricWith":           "metric-vec",
		"internal/sync.(*HashTrieMap[...]).LoadOrStore":                                       "sync-map",
		"sigs.k8s.io/controller-runtime/pkg/client/apiutil.NewDynamicRESTMapper":              "rest-mapper",
		"example.com/app/time.newTimer":                                                       "",
	} {
		if got := memstats.HintOf([]frame.Frame{{Function: function}}); got.Name != want {
			t.Errorf("%s: %q, want %q", function, got.Name, want)
		}
	}
}

func TestRaiseMemProfileRate(t *testing.T) {
	before := runtime.MemProfileRate
	synctest.Test(t, func(t *testing.T) {
		done := make(chan bool)
		first, end := context.WithCancel(t.Context())
		go func() { done <- memstats.RaiseMemProfileRate(first, 1, time.Minute) }()
		synctest.Wait()
		if runtime.MemProfileRate != memstats.LeastMemProfileRate {
			t.Errorf("rate %d, want %d", runtime.MemProfileRate, memstats.LeastMemProfileRate)
		}
		if memstats.RaiseMemProfileRate(t.Context(), 64<<10, time.Minute) {
			t.Error("a second raise beside the first")
		}
		end() // orders the reading above before the writing of the old rate
		if !<-done || runtime.MemProfileRate != before {
			t.Errorf("rate %d after it, want %d", runtime.MemProfileRate, before)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		if !memstats.RaiseMemProfileRate(ctx, 64<<10, time.Hour) || time.Since(start) != 0 {
			t.Error("did not end with its context")
		}
		start = time.Now()
		if !memstats.RaiseMemProfileRate(t.Context(), 64<<10, 2*time.Hour) || time.Since(start) != memstats.LongestRaise {
			t.Errorf("ended after %v, want %v", time.Since(start), memstats.LongestRaise)
		}
		if memstats.RaiseMemProfileRate(t.Context(), before, time.Hour) {
			t.Error("raised to the same rate")
		}
	})
}

// TestPairSites joins the rows that a profile has for each size of one stack, and stacks of one profile only.
func TestPairSites(t *testing.T) {
	site := func(function string, bytes, objects float64) memstats.Site {
		return memstats.Site{Stack: []frame.Frame{{Function: function, Line: 1}}, InuseBytes: bytes, InuseObjects: objects}
	}
	first := &memstats.Heap{Sites: []memstats.Site{site("a", 64, 1), site("gone", 8, 1), site("a", 4096, 2)}}
	last := &memstats.Heap{Sites: []memstats.Site{site("a", 4096, 2), site("new", 16, 1), site("a", 128, 2)}}
	var got []string
	for _, p := range memstats.PairSites(first, last) {
		got = append(got, fmt.Sprintf("%s: %.0f in %.0f, then %.0f in %.0f",
			p.Stack[0].Function, p.First.InuseBytes, p.First.InuseObjects, p.Last.InuseBytes, p.Last.InuseObjects))
	}
	want := []string{"a: 4160 in 3, then 4224 in 4", "gone: 8 in 1, then 0 in 0", "new: 0 in 0, then 16 in 1"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("the pairs (-got +want):\n%s", diff)
	}
}
