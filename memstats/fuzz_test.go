package memstats_test

import (
	"bytes"
	"errors"
	"math"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/leakguard/leakguard/memstats"
)

func FuzzReadHeapText(f *testing.F) {
	for _, path := range glob(f, "*.heap.debug1.txt.gz") {
		f.Add(readGzip(f, path))
	}
	f.Add([]byte(smallHeap))
	f.Add([]byte("heap profile: 1: 1 [1: 1] @ heap/9223372036854775807\n9: 1 [9: 1] @ 0x1\n"))
	f.Add([]byte("heap profile: 1: 1 [1: 1] @ heap/1\n9223372036854775807: 1 [0: 9223372036854775807] @\n#\t\t\t\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append([]byte("heap profile:"), strings.TrimPrefix(string(data), "heap profile:")...)
		h, err := memstats.ReadHeap(data)
		if h == nil {
			t.Fatalf("no partial result, error %v", err)
		}
		if err != nil && !errors.Is(err, memstats.ErrHeapProfile) {
			t.Fatalf("error %v is no ErrHeapProfile", err)
		}
		for _, s := range h.Sites {
			for _, v := range []float64{s.InuseBytes, s.InuseObjects, s.AllocBytes, s.AllocObjects, s.Sampled} {
				if !(v >= 0) || math.IsInf(v, 0) {
					t.Fatalf("site %+v", s)
				}
			}
		}
		memstats.JudgeHeap([]*memstats.Heap{h}, memstats.HeapOptions{})
		memstats.JudgeHeap([]*memstats.Heap{h, h, h}, memstats.HeapOptions{Every: time.Hour})
	})
}

// FuzzReadHeapBinary changes the bytes of a real profile of this process and of one with extreme numbers.
func FuzzReadHeapBinary(f *testing.F) {
	var own bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&own, 0); err != nil {
		f.Fatal(err)
	}
	f.Add(own.Bytes())
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		Sample:     []*profile.Sample{{Value: []int64{math.MaxInt64, 1}}, {Value: []int64{1, math.MaxInt64}}, {Value: []int64{-1, -1}}},
		Period:     math.MaxInt64,
	}
	var extreme bytes.Buffer
	if err := p.WriteUncompressed(&extreme); err != nil {
		f.Fatal(err)
	}
	f.Add(extreme.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := memstats.ReadHeap(data)
		if err != nil {
			if !errors.Is(err, memstats.ErrHeapProfile) {
				t.Fatalf("error %v is no ErrHeapProfile", err)
			}
			return
		}
		for _, s := range h.Sites {
			for _, v := range []float64{s.InuseBytes, s.InuseObjects, s.AllocBytes, s.AllocObjects, s.Sampled} {
				if !(v >= 0) || math.IsInf(v, 0) {
					t.Fatalf("site %+v", s)
				}
			}
		}
		memstats.JudgeHeap([]*memstats.Heap{h}, memstats.HeapOptions{})
		memstats.JudgeHeap([]*memstats.Heap{h, h, h}, memstats.HeapOptions{Every: time.Hour})
	})
}

func FuzzReadTable(f *testing.F) {
	for _, path := range glob(f, "*.series.json.gz") {
		f.Add(readGzip(f, path)[:600])
	}
	f.Add([]byte("t,heap_alloc,num_gc\n0,1,2\n60,3,4\n120,,5\n"))
	f.Add([]byte("time,x\n2026-03-01T00:00:00Z,1\n2026-03-01T00:01:00Z,2\n"))
	f.Add([]byte(`{"columns":["t","x_in_total","x_handled_total"],"rows":[[0,1,1],[1,5,2],[2,null,3]],"marks":[{"t":1,"event":"restart"}]}`))
	f.Add([]byte(`{"columns":["t","x"],"rows":[[0,1e308],[1,-1e308],[1e11,0]]}`))
	f.Add([]byte("t,x\n0,-1e37\n1e6,1e37\n1000000.1,1e30\n2e6,-1e37\n")) // differences of floats at the end of their range
	f.Add([]byte("t,x\n0,-1e308\n1e6,-9e37\n1000000.1,1e30\n2e6,-1e39\n"))
	f.Add([]byte("t,x\n0,7e37\n1,1e39\n1001,1e39\n1001,1e300\n2001,-1e308\n2001.1,1e39\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := memstats.ReadTable(data)
		if err != nil && !errors.Is(err, memstats.ErrTable) {
			t.Fatalf("error %v is no ErrTable", err)
		}
		if table == nil {
			return
		}
		if len(table.Times) != len(table.Rows) {
			t.Fatalf("%d times, %d rows", len(table.Times), len(table.Rows))
		}
		for i, row := range table.Rows {
			if len(row) != len(table.Columns) || i > 0 && table.Times[i].Before(table.Times[i-1]) {
				t.Fatalf("row %d: %v at %v", i, row, table.Times[i])
			}
		}
		if len(table.Columns) > 30 || len(table.Rows) > 200 {
			return
		}
		result := memstats.Replay(table, memstats.ReplayOptions{LimitBytes: 1 << 30})
		for _, s := range result.Series {
			if math.IsNaN(s.PerHour) || math.IsInf(s.PerHour, 0) || s.Reason == "" {
				t.Fatalf("series %+v", s)
			}
		}
	})
}
