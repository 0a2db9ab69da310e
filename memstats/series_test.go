package memstats_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

func TestSeriesMatchesNaiveBuckets(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		layout := memstats.Compact()
		s := memstats.NewSeries(layout)
		var all []memstats.Point
		at := epoch.Add(time.Duration(r.IntN(1e6)) * time.Millisecond)
		for range 1 + r.IntN(2000) {
			v := math.Floor(r.Float64()*4000) + 1e9
			s.Add(at, v)
			all = append(all, memstats.Point{Time: at, Value: v})
			at = at.Add(time.Duration(r.IntN(90)) * time.Second)
			if r.IntN(300) == 0 {
				at = at.Add(5 * time.Hour)
			}
		}
		for _, level := range layout.Levels() {
			horizon := time.Duration(level.Buckets-1) * level.Step
			checkBuckets(t, s.AppendBuckets(nil, horizon), all, level)
		}
	}
}

func checkBuckets(t *testing.T, got []memstats.Bucket, all []memstats.Point, level memstats.Level) {
	t.Helper()
	newest := all[len(all)-1].Time.Truncate(level.Step)
	want := map[time.Time]memstats.Bucket{}
	for _, p := range all {
		start := p.Time.Truncate(level.Step)
		if newest.Sub(start) >= time.Duration(level.Buckets)*level.Step {
			continue
		}
		b, ok := want[start]
		if !ok {
			b = memstats.Bucket{Min: p.Value, Max: p.Value}
		}
		b.Min, b.Max, b.Last = min(b.Min, p.Value), max(b.Max, p.Value), p.Value
		want[start] = b
	}
	if len(got) != len(want) {
		t.Fatalf("%v: %d buckets, want %d", level.Step, len(got), len(want))
	}
	for _, b := range got {
		w := want[b.Start.UTC()]
		if b.Min != w.Min || b.Max != w.Max || b.Last != w.Last || b.Step != level.Step {
			t.Fatalf("%v at %v: %+v, want %+v", level.Step, b.Start, b, w)
		}
	}
}

func TestSeriesFloors(t *testing.T) {
	t.Parallel()
	s := memstats.NewSeries(memstats.Full())
	for i := range 6 * 60 { // a sample every 10 s for an hour; a saw-tooth of 5 min on a slope of 60 an hour
		s.Add(epoch.Add(time.Duration(i)*10*time.Second), float64(i)/6+float64(i%30))
	}
	floors := s.AppendFloors(nil, time.Hour, 10*time.Minute)
	if len(floors) != 6 {
		t.Fatalf("%d floors, want 6: %v", len(floors), floors)
	}
	for i, f := range floors {
		if want := float64(i * 10); f.Value != want {
			t.Errorf("floor %d = %v, want %v", i, f.Value, want)
		}
		if want := epoch.Add(time.Duration(i)*10*time.Minute + 5*time.Minute); !f.Time.Equal(want) {
			t.Errorf("floor %d at %v, want %v", i, f.Time.UTC(), want)
		}
	}
}

func TestSeriesEdges(t *testing.T) {
	t.Parallel()
	s := memstats.NewSeries(memstats.Compact())
	if !s.Start().IsZero() || len(s.AppendBuckets(nil, time.Hour)) != 0 || len(s.AppendFloors(nil, time.Hour, time.Minute)) != 0 {
		t.Error("an empty series has a start or buckets")
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e38, -1e308} {
		s.Add(epoch, v)
	}
	if s.Samples() != 0 {
		t.Errorf("%d samples of what is no value, want 0", s.Samples())
	}
	s.Add(epoch, 1)
	s.Add(epoch.Add(-time.Hour), 2) // the clock went back
	if !s.End().Equal(epoch) || s.Last() != 2 || s.Samples() != 2 {
		t.Errorf("end %v, last %v, samples %d", s.End(), s.Last(), s.Samples())
	}
	s.Reset()
	if s.Samples() != 0 || len(s.AppendBuckets(nil, time.Hour)) != 0 {
		t.Error("Reset left values")
	}
}

func TestSeriesBytes(t *testing.T) {
	t.Parallel()
	if got, most := memstats.Compact().Bytes(), 1750; got > most {
		t.Errorf("compact: %d bytes, want at most %d", got, most)
	}
	if got := 4096 * memstats.Compact().Bytes(); got > 7<<20 {
		t.Errorf("4,096 series take %d bytes, want at most 7 MiB", got)
	}
	if got, most := memstats.Full().Bytes(), 10500; got > most {
		t.Errorf("full: %d bytes, want at most %d", got, most)
	}
}

func TestSeriesDoesNotAllocate(t *testing.T) {
	s := memstats.NewSeries(memstats.Compact())
	buckets, floors := make([]memstats.Bucket, 0, 64), make([]memstats.Point, 0, 64)
	at := epoch
	if allocs := testing.AllocsPerRun(500, func() {
		at = at.Add(10 * time.Second)
		s.Add(at, float64(at.Second()))
		buckets = s.AppendBuckets(buckets[:0], time.Hour)
		floors = s.AppendFloors(floors[:0], time.Hour, 4*time.Minute)
	}); allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

func TestNewLayout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		levels []memstats.Level
		ok     bool
	}{
		{"none", nil, false},
		{"no step", []memstats.Level{{0, 3}}, false},
		{"no buckets", []memstats.Level{{time.Second, 0}}, false},
		{"falling steps", []memstats.Level{{time.Minute, 3}, {time.Second, 3}}, false},
		{"good", []memstats.Level{{time.Second, 3}, {time.Minute, 3}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := memstats.NewLayout(tt.levels...); (err == nil) != tt.ok {
				t.Errorf("error %v, want ok %v", err, tt.ok)
			}
		})
	}
}
