package memstats_test

import (
	"fmt"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

// One goroutine a minute is lost, and nothing that the operator manages grows with it.
func ExampleJudge() {
	goroutines, objects := memstats.NewSeries(memstats.Compact()), memstats.NewSeries(memstats.Compact())
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for at := start; at.Before(start.Add(30 * time.Minute)); at = at.Add(10 * time.Second) {
		goroutines.Add(at, 80+float64(int(at.Sub(start).Minutes())))
		objects.Add(at, 200)
	}
	judge := memstats.NewJudge(memstats.Thresholds{})
	verdict := judge.Judge(goroutines, memstats.Covariate{Name: "live objects", Series: objects})
	fmt.Printf("%s (%s), %.0f an hour\n", verdict.Shape, verdict.Outcome, verdict.PerHour)
	// Output: growing (leak), 60 an hour
}

func ExampleReplay() {
	table, err := memstats.ReadTable([]byte("t,open_fds,reconciles_total\n0,14,0\n30,14,0\n60,14,0\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	result := memstats.Replay(table, memstats.ReplayOptions{})
	fmt.Println(result.Verdict, len(result.Findings))
	// Output: benign 0
}
