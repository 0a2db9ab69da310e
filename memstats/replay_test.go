package memstats_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leakguard/leakguard/memstats"
)

// recording makes a CSV with a row a minute.
func recording(header string, minutes int, row func(m int) []float64) string {
	b := []byte(header + "\n")
	for m := range minutes {
		b = fmt.Append(b, m*60)
		for _, v := range row(m) {
			b = fmt.Appendf(b, ",%v", v)
		}
		b = append(b, '\n')
	}
	return string(b)
}

func TestReplay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		csv  string
		want memstats.Outcome
		in   string // in the reason of the first finding
	}{
		{"descriptors per reconcile", recording("t,open_fds,reconciles_total", 300, func(m int) []float64 {
			return []float64{14 + 3*float64(m/2), float64(m / 2)}
		}), memstats.Leak, "reconciles_total: 3 each exactly"},
		{"threads", recording("t,threads", 300, func(m int) []float64 { return []float64{12 + float64(m)/5} }), memstats.Leak, "threads"},
		{"goroutines follow live objects", recording("t,num_goroutine,live_objects", 600, func(m int) []float64 {
			return []float64{80 + 2*float64(m), 10 + float64(m)}
		}), memstats.Benign, ""},
		{"goroutines per live object rise", recording("t,num_goroutine,live_objects", 600, func(m int) []float64 {
			return []float64{80 + 2*float64(m) + float64(m*m)/60, 100 + float64(m)}
		}), memstats.Leak, "num_goroutine"},
		{"goroutines rise, live objects do not", recording("t,num_goroutine,live_objects", 600, func(m int) []float64 {
			return []float64{80 + float64(m), 100 + float64(m*7%5)}
		}), memstats.Leak, "num_goroutine"},
		{"a queue that grows", recording("t,workqueue_depth,num_goroutine", 300, func(m int) []float64 {
			return []float64{float64(5 * m), 80}
		}), memstats.Suspect, "too slow"},
		{"heap saw-tooth of 40 min", recording("t,heap_alloc,num_gc", 600, func(m int) []float64 {
			return []float64{40*mib + float64(m%40)*2*mib, float64(m / 40)}
		}), memstats.Benign, ""},
		{"heap saw-tooth that nobody counts", recording("t,heap_alloc", 600, func(m int) []float64 {
			return []float64{40*mib + float64(m%40)*2*mib}
		}), memstats.Benign, ""},
		{"resident memory rises beside the heap", recording("t,rss,heap_alloc", 600, func(m int) []float64 {
			return []float64{200*mib + float64(m)*mib, 50 * mib}
		}), memstats.Suspect, "outside the Go heap"},
		{"resident memory keeps a burst", recording("t,rss,heap_alloc", 600, func(m int) []float64 {
			if m < 100 {
				return []float64{100 * mib, 50 * mib}
			}
			return []float64{400 * mib, 50*mib + step(m < 110, 300*mib)}
		}), memstats.Benign, ""},
		{"handlers added and never removed", recording("t,handlers_added_total,handlers_removed_total", 300, func(m int) []float64 {
			return []float64{10 + float64(m), 5}
		}), memstats.Leak, "handlers_registered"},
		{"leak until a restart", recording("t,num_goroutine,process_start_time", 300, func(m int) []float64 {
			if m < 280 {
				return []float64{80 + 2*float64(m), 0}
			}
			return []float64{80, 280 * 60}
		}), memstats.Leak, "until a restart"},
		{"restarts bring it down", recording("t,num_goroutine,reconciles_total", 300, func(m int) []float64 {
			return []float64{80 + 30*float64(m/100), 1000 * float64(m%100)}
		}), memstats.Benign, ""},
		{"warm-up", recording("t,heap_alloc,num_goroutine", 600, func(m int) []float64 {
			return []float64{40*mib + 100*mib*(1-1/(1+float64(m)/5)), 90}
		}), memstats.Benign, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			table, err := memstats.ReadTable([]byte(tt.csv))
			if err != nil {
				t.Fatal(err)
			}
			got := memstats.Replay(table, memstats.ReplayOptions{})
			if got.Verdict != tt.want {
				for _, s := range got.Series {
					t.Logf("%s %v %v: %s", s.Name, s.Shape, s.Outcome, s.Reason)
				}
				t.Fatalf("%v, want %v", got.Verdict, tt.want)
			}
			if tt.in != "" && (len(got.Findings) == 0 || !strings.Contains(got.Findings[0].Reason, tt.in)) {
				t.Errorf("findings %+v, want a reason with %q", got.Findings, tt.in)
			}
		})
	}
}

func TestReplayForgetsAtAGap(t *testing.T) {
	t.Parallel()
	b := []byte("t,num_goroutine\n")
	for m := range 40 {
		at := m * 60
		if m >= 20 {
			at += 7200
		}
		b = fmt.Appendf(b, "%d,%d\n", at, 80+m)
	}
	table, err := memstats.ReadTable(b)
	if err != nil {
		t.Fatal(err)
	}
	got := memstats.Replay(table, memstats.ReplayOptions{})
	if got.Lives != 2 || got.Series[0].Verdict.Samples != 20 || got.Series[0].Verdict.NeedSamples == 0 {
		t.Errorf("lives %d, series %+v", got.Lives, got.Series[0])
	}
}

func TestReadTableErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, data, want string }{
		{"empty", "", "empty"},
		{"no time", "a,b\n1,2\n", "no column is named t"},
		{"twice", "t,a,a\n1,2,3\n", `"a" occurs twice`},
		{"no number", "t,a\n1,2\n60,x\n", `line 3, column 4: a: "x" is no number`},
		{"fields", "t,a\n1,2\n60\n", "line 3"},
		{"backwards", "t,a\n60,2\n1,2\n", "line 3: the time 1 is before"},
		{"negative time", "t,a\n-1,2\n", "line 2: the time -1"},
		{"bad time", "t,a\nyesterday,2\n", `line 2, column 1: t: "yesterday"`},
		{"json syntax", "{\n \"columns\": [\"t\",]\n}", "line 2, column"},
		{"json type", `{"columns": ["t"], "rows": [[0],["x"]]}`, "field rows"},
		{"json no columns", `{"rows": []}`, "field columns"},
		{"json width", `{"columns": ["t","a"], "rows": [[0,1],[1]]}`, "field rows[1]: 1 values, want 2"},
		{"json mark", `{"columns": ["t"], "rows": [], "marks": [{"t": -1}]}`, "field marks[0].t"},
		{"quote", "t,a\n1,\"2\n", "line"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := memstats.ReadTable([]byte(tt.data))
			if !errors.Is(err, memstats.ErrTable) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want ErrTable with %q", err, tt.want)
			}
		})
	}
}

func TestRoleOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]memstats.Role{
		"heap_alloc": memstats.RoleBytes, "heap_live_bytes": memstats.RoleBytes, "heap_objects": memstats.RoleCount, "heap_idle": memstats.RoleDerived,
		"next_gc": memstats.RoleDerived, "num_goroutine": memstats.RoleCount, "open_fds": memstats.RoleCount, "threads": memstats.RoleCount,
		"rss": memstats.RoleResident, "process_resident_memory_bytes": memstats.RoleResident, "reconciles_total": memstats.RoleWork, "num_gc": memstats.RoleWork,
		"live_pods": memstats.RoleLoad, "cached_objects": memstats.RoleLoad, "events_per_s": memstats.RoleLoad, "connected_clients": memstats.RoleLoad,
		"workqueue_depth": memstats.RoleBacklog, "workqueue_unfinished_work_seconds": memstats.RoleCount, "registry_series": memstats.RoleCount,
		"process_start_time": memstats.RoleRestart, "something_new": memstats.RoleCount,
		"HeapAlloc": memstats.RoleBytes, "OpenFDs": memstats.RoleCount, "NumGC": memstats.RoleWork, "RSSBytes": memstats.RoleResident, "LivePods": memstats.RoleLoad,
		"go_goroutines": memstats.RoleCount, "go_memstats_heap_inuse_bytes": memstats.RoleDerived, "go_memstats_mallocs_total": memstats.RoleWork,
		"go_gc_duration_seconds_count": memstats.RoleWork, "process_start_time_seconds": memstats.RoleRestart, "index": memstats.RoleDerived,
	} {
		if got := memstats.RoleOf(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestEstimateTimeToLimit(t *testing.T) {
	t.Parallel()
	v := memstats.Verdict{Shape: memstats.Growing, Outcome: memstats.Leak, PerHour: 100, LowPerHour: 50, HighPerHour: 200, Level: 1000}
	got, ok := memstats.EstimateTimeToLimit(v, 2000)
	want := memstats.TimeToLimit{Earliest: 5 * time.Hour, Likely: 10 * time.Hour, Latest: 20 * time.Hour}
	if !ok || got != want {
		t.Errorf("%+v, %v; want %+v", got, ok, want)
	}
	v.LowPerHour = -1
	if got, ok = memstats.EstimateTimeToLimit(v, 2000); !ok || got.Latest != 0 {
		t.Errorf("with a slope that may be none: %+v", got)
	}
	for name, change := range map[string]func(*memstats.Verdict) float64{
		"flat":      func(v *memstats.Verdict) float64 { v.Shape = memstats.Flat; return 2000 },
		"explained": func(v *memstats.Verdict) float64 { v.Outcome = memstats.Benign; return 2000 },
		"no limit":  func(*memstats.Verdict) float64 { return 0 },
	} {
		w := v
		limit := change(&w)
		if _, ok := memstats.EstimateTimeToLimit(w, limit); ok {
			t.Errorf("%s: an estimate", name)
		}
	}
}

// TestReplayReadsNamesInAnyStyle wants the same verdict whatever style the names of the columns have.
func TestReplayReadsNamesInAnyStyle(t *testing.T) {
	t.Parallel()
	row := func(m int) []float64 {
		return []float64{float64(7 * m), float64(6 * m), 40*mib + float64(m)*1000, 90}
	}
	for _, header := range []string{
		"t,events_in_total,events_handled_total,heap_idle,num_goroutine", "ts,EventsInTotal,EventsHandledTotal,HeapIdle,NumGoroutine",
		"TIME,EVENTS_IN_TOTAL,EVENTS_HANDLED_TOTAL,HEAP_IDLE,NUM_GOROUTINE", "Timestamp,events-in-total,events-handled-total,heap-idle,num-goroutine",
	} {
		table, err := memstats.ReadTable([]byte(recording(header, 300, row)))
		if err != nil {
			t.Fatal(err)
		}
		got := memstats.Replay(table, memstats.ReplayOptions{})
		if got.Verdict != memstats.Suspect || len(got.Findings) != 1 || got.Findings[0].Category != "handler-backpressure" {
			t.Errorf("%s: %v, findings %+v", header, got.Verdict, got.Findings)
		}
		if _, _, ok := got.Source(table, got.Series[len(got.Series)-1].Name); !ok {
			t.Errorf("%s: no source of %q", header, got.Series[len(got.Series)-1].Name)
		}
	}
}

// TestReadTableForms reads one recording in each form that spreadsheets and scripts write.
func TestReadTableForms(t *testing.T) {
	t.Parallel()
	want, err := memstats.ReadTable([]byte("t,heap_alloc,num_gc\n1767225600,1,2\n1767225660,,4\n1767225720,5,6\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"byte order mark":      "\ufefft,heap_alloc,num_gc\n1767225600,1,2\n1767225660,,4\n1767225720,5,6\n",
		"carriage returns":     "t,heap_alloc,num_gc\r\n1767225600,1,2\r\n1767225660,,4\r\n1767225720,5,6\r\n",
		"no last line end":     "t,heap_alloc,num_gc\n1767225600,1,2\n1767225660,,4\n1767225720,5,6",
		"quotes and spaces":    "\"t\", \"heap_alloc\", num_gc \n1767225600, 1 ,2\n\n1767225660, ,4\n1767225720,5,6\n",
		"comments":             "# from a script\nt,heap_alloc,num_gc\n1767225600,1,2\n# a pause\n1767225660,,4\n1767225720,5,6\n",
		"semicolons":           "t;heap_alloc;num_gc\n1767225600;1;2\n1767225660;;4\n1767225720;5;6\n",
		"tabs":                 "t\theap_alloc\tnum_gc\n1767225600\t1\t2\n1767225660\tNaN\t4\n1767225720\t5\t6\n",
		"another column order": "heap_alloc,t,num_gc\n1,1767225600,2\n,1767225660,4\n5,1767225720,6\n",
		"RFC 3339":             "time,heap_alloc,num_gc\n2026-01-01T00:00:00Z,1,2\n2026-01-01T01:01:00+01:00,,4\n2026-01-01T00:02:00.000Z,5,6\n",
		"dates with a space":   "Time,heap_alloc,num_gc\n2026-01-01 00:00:00,1,2\n2026-01-01 00:01:00,,4\n2026-01-01 00:02:00,5,6\n",
		"JSON":                 `{"columns":["t","heap_alloc","num_gc"],"rows":[[1767225600,1,2],[1767225660,null,4],[1767225720,5,6]]}`,
		"JSON, marked":         "\ufeff" + `{"unit":"bytes","columns":["heap_alloc","ts","num_gc"],"rows":[[1,1767225600,2],[null,1767225660,4],[5,1767225720,6]]}`,
	} {
		got, err := memstats.ReadTable([]byte(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestMarksInAnyOrder(t *testing.T) {
	t.Parallel()
	table, err := memstats.ReadTable([]byte(`{"columns":["t","x"],"rows":[[0,1],[60,2],[120,3],[180,4]],"marks":[{"t":120,"event":"OOM"},{"t":60,"event":"Deployment"},{"t":90,"event":"a holiday"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := memstats.Replay(table, memstats.ReplayOptions{}); got.Lives != 3 {
		t.Errorf("%d lives, want 3", got.Lives)
	}
}
