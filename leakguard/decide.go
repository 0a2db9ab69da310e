package leakguard

import (
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// decision is what a full dump says of a place: the creators, children and minutes that the cheap profile lacks.
type decision struct {
	at      time.Time // when the dump was taken; zero when none was
	leak    bool
	running bool // they run now and then: twice as many are asked for
	refused bool // the budget forbade a dump
	reason  string
	creator frame.Frame
}

// fresh reports whether the decision still holds.
func (d *decision) fresh(now time.Time, t timing) bool {
	return !d.at.IsZero() && now.Sub(d.at) < max(t.recheck, 3*t.interval)
}

// dumpIndex is what the decisions of one tick ask a dump.
type dumpIndex struct {
	dump     *stackmatch.Dump
	byRoot   map[string][]int // goroutines by the function they were started for
	alive    map[uint64]bool
	children map[uint64]int // live children by creator
}

func indexDump(d *stackmatch.Dump) *dumpIndex {
	x := &dumpIndex{dump: d, byRoot: map[string][]int{}, alive: map[uint64]bool{}, children: map[uint64]int{}}
	for i := range d.Goroutines {
		g := &d.Goroutines[i]
		root := frame.Root(g.Stack).Function
		x.byRoot[root] = append(x.byRoot[root], i)
		x.alive[g.ID] = true
		if g.CreatorID != 0 {
			x.children[g.CreatorID]++
		}
	}
	return x
}

// decide asks the dump about a place whose survivors have lived for age:
//
//   - a goroutine with live children is judged by them (the leaf rule);
//   - the creators of the others must be gone, or one creator must have many of them or more;
//   - the runtime must say that they have waited for 0.4 of the age that we saw; those that have not, run.
func (x *dumpIndex) decide(root string, age time.Duration, many int) decision {
	d := decision{}
	var leaves, gone, waited, known int
	byCreator := map[uint64]int{}
	for _, i := range x.byRoot[root] {
		g := &x.dump.Goroutines[i]
		if x.children[g.ID] > 0 {
			continue
		}
		leaves++
		d.creator = g.CreatedBy
		if g.CreatorID != 0 {
			known++
			byCreator[g.CreatorID]++
			if !x.alive[g.CreatorID] {
				gone++
			}
		}
		if g.Wait >= time.Duration(waitedShare*float64(age)).Truncate(time.Minute) {
			waited++
		}
	}
	most := 0
	for _, n := range byCreator {
		most = max(most, n)
	}
	switch {
	case 2*leaves < len(x.byRoot[root]):
		d.reason = "most of them have live children and are judged by those"
	case known > 0 && 5*gone < 4*known && most < many:
		d.reason = "their creators live and none has many of them"
	default:
		d.leak = true
		d.running = 2*waited < leaves
	}
	return d
}
