package memstats_test

import (
	"testing"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

// feed fills a series with f of the minutes since the start, every 10 s.
func feed(layout *memstats.Layout, length time.Duration, f func(minutes float64) float64) *memstats.Series {
	s := memstats.NewSeries(layout)
	for at := time.Duration(0); at <= length; at += 10 * time.Second {
		s.Add(epoch.Add(at), f(at.Minutes()))
	}
	return s
}

func step(condition bool, v float64) float64 {
	if condition {
		return v
	}
	return 0
}

func TestJudgeShapes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		length  time.Duration
		f       func(m float64) float64
		shape   memstats.Shape
		outcome memstats.Outcome
	}{
		{"flat", 2 * time.Hour, func(float64) float64 { return 40 }, memstats.Flat, memstats.Benign},
		{"one a minute", 31 * time.Minute, func(m float64) float64 { return 40 + float64(int(m)) }, memstats.Growing, memstats.Leak},
		{"one an hour", 22 * time.Hour, func(m float64) float64 { return 40 + float64(int(m/60)) }, memstats.Growing, memstats.Leak},
		{"a staircase: eight every ten hours", 6 * 24 * time.Hour, func(m float64) float64 { return 40 + 8*float64(int(m/600)) }, memstats.Growing, memstats.Leak},
		{"a step", 6 * time.Hour, func(m float64) float64 { return 40 + step(m > 100, 60) }, memstats.Stepped, memstats.Benign},
		{"a ramp of 15 min", 6 * time.Hour, func(m float64) float64 { return 40 + min(max(0, m-100), 15)*10 }, memstats.Stepped, memstats.Benign},
		{"a burst", 3 * time.Hour, func(m float64) float64 { return 40 + step(m > 60 && m < 70, 5000) }, memstats.Bursting, memstats.Benign},
		{"a saw-tooth", 3 * time.Hour, func(m float64) float64 { return 40 + 20*(m-10*float64(int(m/10))) }, memstats.SawTooth, memstats.Benign},
		{"falling", 5 * time.Hour, func(m float64) float64 { return 4000 - 5*m }, memstats.Shrinking, memstats.Benign},
		{"too early", 10 * time.Minute, func(m float64) float64 { return 40 + 10*m }, memstats.WarmingUp, memstats.Suspect},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, layout := range map[string]*memstats.Layout{"compact": memstats.Compact(), "full": memstats.Full()} {
				v := memstats.NewJudge(memstats.Thresholds{}).Judge(feed(layout, tt.length, tt.f))
				if v.Shape != tt.shape || v.Outcome != tt.outcome {
					t.Errorf("%s: %v, want %v (%v)", name, v, tt.shape, tt.outcome)
				}
			}
		})
	}
}
