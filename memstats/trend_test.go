package memstats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

var epoch = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// points makes n points of one of the kinds that trends meet: smooth, noisy, tied, stepped, with equal times.
func points(r *rand.Rand, n int) []memstats.Point {
	kind, slope := r.IntN(5), r.NormFloat64()*10
	all := make([]memstats.Point, 0, n)
	at := epoch
	for i := range n {
		v := slope * float64(i)
		switch kind {
		case 1:
			v += r.NormFloat64() * 50
		case 2:
			v = float64(r.IntN(4))
		case 3:
			v = math.Floor(v/40) * 40
		case 4:
			v = r.NormFloat64() * math.Pow(10, float64(r.IntN(9)))
		}
		all = append(all, memstats.Point{Time: at, Value: v})
		if r.IntN(8) > 0 {
			at = at.Add(time.Duration(1+r.IntN(600)) * time.Second)
		}
	}
	return all
}

// naiveTrend computes the same from all pairs.
func naiveTrend(all []memstats.Point) (slopes []float64, s int64) {
	for j := range all {
		for i := range j {
			switch d := all[j].Value - all[i].Value; {
			case d > 0:
				s++
			case d < 0:
				s--
			}
			if dt := all[j].Time.Sub(all[i].Time).Hours(); dt > 0 {
				slopes = append(slopes, (all[j].Value-all[i].Value)/dt)
			}
		}
	}
	slices.Sort(slopes)
	return slopes, s
}

func near(got, want float64) bool {
	return got == want || math.Abs(got-want) <= 1e-9*(1+math.Abs(want))
}

func TestFitTrendMatchesAllPairs(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		all := points(r, 2+r.IntN(120))
		got := memstats.FitTrend(all)
		slopes, s := naiveTrend(all)
		if got.S != s {
			t.Fatalf("n=%d: S = %d, want %d", len(all), got.S, s)
		}
		if len(slopes) == 0 {
			continue
		}
		want := (slopes[(len(slopes)-1)/2] + slopes[len(slopes)/2]) / 2
		if !near(got.PerHour, want) {
			t.Fatalf("n=%d: slope = %v, want %v", len(all), got.PerHour, want)
		}
		if got.LowPerHour > got.PerHour || got.HighPerHour < got.PerHour {
			t.Fatalf("n=%d: interval [%v, %v] does not hold %v", len(all), got.LowPerHour, got.HighPerHour, got.PerHour)
		}
		at := make([]float64, 0, len(all))
		for _, p := range all {
			at = append(at, p.Value-got.PerHour*p.Time.Sub(all[len(all)-1].Time).Hours())
		}
		slices.Sort(at)
		if want := (at[(len(at)-1)/2] + at[len(at)/2]) / 2; !near(got.At, want) {
			t.Fatalf("n=%d: at = %v, want %v", len(all), got.At, want)
		}
	}
}

func TestFitTrendKnown(t *testing.T) {
	t.Parallel()
	make10 := func(f func(i int) float64) (all []memstats.Point) {
		for i := range 10 {
			all = append(all, memstats.Point{Time: epoch.Add(time.Duration(i) * time.Hour), Value: f(i)})
		}
		return all
	}
	for _, tt := range []struct {
		name   string
		points []memstats.Point
		s      int64
		slope  float64
		p      float64
	}{
		{"none", nil, 0, 0, 1},
		{"one", make10(func(int) float64 { return 1 })[:1], 0, 0, 1},
		{"flat", make10(func(int) float64 { return 7 }), 0, 0, 1},
		{"line", make10(func(i int) float64 { return 3 * float64(i) }), 45, 3, 8.3e-5},
		{"line with a wild value", make10(func(i int) float64 {
			if i == 4 {
				return 1e6
			}
			return 3 * float64(i)
		}), 35, 3, 0.0024},
		{"falling", make10(func(i int) float64 { return -2 * float64(i) }), -45, -2, 8.3e-5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := memstats.FitTrend(tt.points)
			if got.S != tt.s || !near(got.PerHour, tt.slope) || math.Abs(got.P-tt.p) > 0.02*tt.p {
				t.Errorf("S %d, slope %v, P %v; want %d, %v, %v", got.S, got.PerHour, got.P, tt.s, tt.slope, tt.p)
			}
		})
	}
}

func TestFitTrendUsesTheNewestPoints(t *testing.T) {
	t.Parallel()
	var all []memstats.Point
	for i := range 2 * memstats.MaxTrendPoints {
		v := 0.0
		if i >= memstats.MaxTrendPoints {
			v = float64(i)
		}
		all = append(all, memstats.Point{Time: epoch.Add(time.Duration(i) * time.Hour), Value: v})
	}
	if got := memstats.FitTrend(all); got.N != memstats.MaxTrendPoints || !near(got.PerHour, 1) {
		t.Errorf("N %d, slope %v; want %d, 1", got.N, got.PerHour, memstats.MaxTrendPoints)
	}
}
