package memstats_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

func FuzzReadHeapText(f *testing.F) {
	for _, path := range glob(f, "*.heap.debug1.txt.gz") {
		f.Add(readGzip(f, path))
	}
	f.Add([]byte(smallHeap))
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

func FuzzReadTable(f *testing.F) {
	for _, path := range glob(f, "*.series.json.gz") {
		f.Add(readGzip(f, path)[:600])
	}
	f.Add([]byte("t,heap_alloc,num_gc\n0,1,2\n60,3,4\n120,,5\n"))
	f.Add([]byte("time,x\n2026-03-01T00:00:00Z,1\n2026-03-01T00:01:00Z,2\n"))
	f.Add([]byte(`{"columns":["t","x_in_total","x_handled_total"],"rows":[[0,1,1],[1,5,2],[2,null,3]],"marks":[{"t":1,"event":"restart"}]}`))
	f.Add([]byte(`{"columns":["t","x"],"rows":[[0,1e308],[1,-1e308],[1e11,0]]}`))
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
			if math.IsNaN(s.PerHour) || s.Reason == "" {
				t.Fatalf("series %+v", s)
			}
		}
	})
}
