package stackmatch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/stackmatch"
)

func TestChanges(t *testing.T) {
	stack := call("example.com/op/internal/worker.(*Pool).run", "/workspace/internal/worker/pool.go", 33)
	tests := []struct {
		name   string
		counts []int
		want   stackmatch.Trend // "" means that it is left out
	}{
		{"steady", []int{100, 105}, ""},
		{"growing", []int{40, 400}, stackmatch.TrendGrowing},
		{"growing in three", []int{40, 200, 400}, stackmatch.TrendGrowing},
		{"staircase", []int{118, 118, 198, 198, 278}, stackmatch.TrendStaircase},
		{"burst that has ended", []int{40, 500, 42}, stackmatch.TrendBurst},
		{"burst of something new", []int{0, 500, 0}, stackmatch.TrendBurst},
		{"new", []int{0, 30}, stackmatch.TrendNew},
		{"gone", []int{30, 0}, stackmatch.TrendGone},
		{"shrinking", []int{300, 200, 100}, stackmatch.TrendShrinking},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var dumps []*stackmatch.Dump
			for _, n := range tt.counts {
				dumps = append(dumps, readText(t, pile(n, 100, "select", 0, stack)))
			}
			got := stackmatch.Changes(dumps, "")
			if tt.want == "" {
				if len(got) != 0 {
					t.Errorf("got %+v, want nothing", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("got %+v, want one change", got)
			}
			if got[0].Trend != tt.want {
				t.Errorf("trend: got %s, want %s", got[0].Trend, tt.want)
			}
			if diff := cmp.Diff(tt.counts, got[0].Counts); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}
