package memstats_test

import (
	"math"
	"testing"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

// TestScaledLayoutGivesTheSameVerdict records a series twice, once with all times divided by a factor into a layout
// scaled by it: everything but the clock must be the same.
func TestScaledLayoutGivesTheSameVerdict(t *testing.T) {
	t.Parallel()
	bytes, garbage := memstats.ByteThresholds(), memstats.ByteThresholds()
	garbage.Garbage = true
	for _, tt := range []struct {
		name       string
		length     time.Duration
		thresholds memstats.Thresholds
		value      func(m float64) float64
		load       func(m float64) float64 // nil for none
	}{
		{"nothing yet", time.Minute, memstats.Thresholds{}, func(float64) float64 { return 40 }, nil},
		{"too early", 12 * time.Minute, memstats.Thresholds{}, func(m float64) float64 { return 40 + 10*m }, nil},
		{"flat", 2 * time.Hour, memstats.Thresholds{}, func(float64) float64 { return 40 }, nil},
		{"one a minute", 31 * time.Minute, memstats.Thresholds{}, math.Floor, nil},
		{"ten a minute, other warm-up", 50 * time.Minute, memstats.Thresholds{WarmUp: 15 * time.Minute}, func(m float64) float64 { return math.Floor(10 * m) }, nil},
		{"one an hour", 22 * time.Hour, memstats.Thresholds{}, func(m float64) float64 { return math.Floor(m / 60) }, nil},
		{"staircase of six days", 6 * 24 * time.Hour, memstats.Thresholds{}, func(m float64) float64 { return 40 + 8*math.Floor(m/600) }, nil},
		{"step", 6 * time.Hour, memstats.Thresholds{}, func(m float64) float64 { return 40 + step(m > 100, 60) }, nil},
		{"burst", 3 * time.Hour, memstats.Thresholds{}, func(m float64) float64 { return 40 + step(m > 60 && m < 70, 5000) }, nil},
		{"saw-tooth of bytes", 5 * time.Hour, garbage, func(m float64) float64 { return 40*mib + 2*mib*math.Mod(m, 40) }, nil},
		{"falling", 5 * time.Hour, memstats.Thresholds{}, func(m float64) float64 { return 4000 - 5*m }, nil},
		{"warming up", 3 * time.Hour, bytes, func(m float64) float64 { return 200 * mib * (1 - math.Exp(-m/25)) }, nil},
		{"explained", 9 * time.Hour, memstats.Thresholds{}, func(m float64) float64 { return 80 + 2*m }, func(m float64) float64 { return 10 + m }},
		{
			"hidden beside a load", 30 * time.Hour,
			memstats.Thresholds{},
			func(m float64) float64 { return 200 + 100*math.Sin(m/60) + math.Floor(m/6) }, func(m float64) float64 { return 50 + 40*math.Sin(m/60) },
		},
		{
			"kept after bursts", 4 * time.Hour, bytes, func(m float64) float64 { return 50*mib + step(m > 30, 80*mib) + step(m > 120, 90*mib) },
			func(m float64) float64 { return 5 + step(m > 30 && m < 36 || m > 120 && m < 129, 4000) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, layout := range []*memstats.Layout{memstats.Compact(), memstats.Full()} {
				want := judgeScaled(layout, 1, tt.length, tt.thresholds, tt.value, tt.load)
				for _, factor := range []int64{10, 100, 1000} {
					got := judgeScaled(layout, factor, tt.length, tt.thresholds, tt.value, tt.load)
					checkScaled(t, factor, want, got)
				}
			}
		})
	}
}

// judgeScaled feeds a value every 10 s with all times divided by a factor, from the Unix epoch on, so that buckets
// begin at the same values.
func judgeScaled(layout *memstats.Layout, factor int64, length time.Duration, thresholds memstats.Thresholds, value, load func(m float64) float64) memstats.Verdict {
	scaled := layout.Scaled(float64(factor))
	s, l := memstats.NewSeries(scaled), memstats.NewSeries(scaled)
	for at := time.Duration(0); at <= length; at += 10 * time.Second {
		now := time.Unix(0, epoch.Add(at).UnixNano()/factor)
		s.Add(now, value(at.Minutes()))
		if load != nil {
			l.Add(now, load(at.Minutes()))
		}
	}
	thresholds.Scale = float64(factor)
	var covariates []memstats.Covariate
	if load != nil {
		covariates = []memstats.Covariate{{Name: "load", Series: l}}
	}
	return memstats.NewJudge(thresholds).Judge(s, covariates...)
}

func checkScaled(t *testing.T, factor int64, want, got memstats.Verdict) {
	t.Helper()
	same := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b), 1e-9) }
	type fields memstats.Verdict // prints all of them
	f := float64(factor)
	if got.Shape != want.Shape || got.Outcome != want.Outcome || got.ExplainedBy != want.ExplainedBy ||
		got.Samples != want.Samples || got.NeedSamples != want.NeedSamples || !same(got.P, want.P) || !same(got.Rise, want.Rise) ||
		!same(got.Level, want.Level) || !same(got.PerHour, f*want.PerHour) || !same(float64(got.Horizon), float64(want.Horizon)/f) {
		t.Errorf("times divided by %d:\n%+v\nwant, with the clock of the factor one:\n%+v", factor, fields(got), fields(want))
	}
	if got.Since.IsZero() != want.Since.IsZero() || !want.Since.IsZero() && got.Since.Sub(time.Unix(0, want.Since.UnixNano()/factor)).Abs() > time.Microsecond {
		t.Errorf("times divided by %d: since %v, want %v divided", factor, got.Since, want.Since)
	}
}
