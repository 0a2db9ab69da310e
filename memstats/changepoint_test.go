package memstats_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

// naiveChange tries every place with sums computed anew, and gives the least squared error.
func naiveChange(all []memstats.Point) (best float64) {
	best = math.Inf(1)
	hours := func(i int) float64 { return all[i].Time.Sub(all[0].Time).Hours() }
	for k := 1; k < len(all); k++ {
		best = min(best, spread(all[:k])+spread(all[k:]))
	}
	for k := range len(all) - 1 {
		var mx, my float64
		for i := range all {
			mx += max(0, hours(i)-hours(k)) / float64(len(all))
			my += all[i].Value / float64(len(all))
		}
		var sxx, sxy float64
		for i := range all {
			x := max(0, hours(i)-hours(k)) - mx
			sxx += x * x
			sxy += x * (all[i].Value - my)
		}
		if sxx > 0 {
			best = min(best, spread(all)-sxy*sxy/sxx)
		}
	}
	return best
}

func spread(all []memstats.Point) (s float64) {
	var mean float64
	for _, p := range all {
		mean += p.Value / float64(len(all))
	}
	for _, p := range all {
		s += (p.Value - mean) * (p.Value - mean)
	}
	return s
}

func TestFindChangeMatchesAllPlaces(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		all := points(r, 3+r.IntN(60))
		got := memstats.FindChange(all)
		total := spread(all)
		if got.Kind == memstats.NoChange {
			if total > 1e-9*(1+all[0].Value*all[0].Value) && all[0].Time.Before(all[len(all)-1].Time) {
				t.Fatalf("no change found in %v", all)
			}
			continue
		}
		want := 1 - naiveChange(all)/total
		if math.Abs(got.Explained-want) > 1e-6 {
			t.Fatalf("n=%d %v explains %v, want %v", len(all), got.Kind, got.Explained, want)
		}
	}
}

func TestFindChangeKnown(t *testing.T) {
	t.Parallel()
	series := func(f func(i int) float64) (all []memstats.Point) {
		for i := range 40 {
			all = append(all, memstats.Point{Time: epoch.Add(time.Duration(i) * time.Hour), Value: f(i)})
		}
		return all
	}
	for _, tt := range []struct {
		name   string
		points []memstats.Point
		want   memstats.Change
	}{
		{"flat", series(func(int) float64 { return 5 }), memstats.Change{}},
		{"step", series(func(i int) float64 {
			if i < 13 {
				return 10
			}
			return 25
		}), memstats.Change{Kind: memstats.Step, Index: 13, Begin: epoch.Add(13 * time.Hour), Before: 10, After: 25, Explained: 1}},
		{
			"ramp", series(func(i int) float64 { return 10 + 2*max(0, float64(i-20)) }),
			memstats.Change{Kind: memstats.Ramp, Index: 20, Begin: epoch.Add(20 * time.Hour), Before: 10, After: 48, Explained: 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := memstats.FindChange(tt.points)
			if got.Kind != tt.want.Kind || got.Index != tt.want.Index || !got.Begin.Equal(tt.want.Begin) ||
				!near(got.Before, tt.want.Before) || !near(got.After, tt.want.After) || !near(got.Explained, tt.want.Explained) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
