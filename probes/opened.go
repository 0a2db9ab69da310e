package probes

import (
	"cmp"
	"slices"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// maxOpened bounds the open things that one reading names.
const maxOpened = 16

// Opened is one thing that is open at the moment of a [Reading].
type Opened struct {
	// What says what it is for, without the names of objects: "GET deployments.apps/status", "watch pods by label app". It may
	// be empty.
	What string
	// Scope is the scope it was opened in; empty when unknown.
	Scope string
	// Ended is set when the work that opened it has ended.
	Ended bool
	// Age is how long it has been open.
	Age time.Duration
	// Culprit is the call to blame, zero when unknown; Stack is the calls that opened it, leaf first, nil when they were not
	// taken.
	Culprit frame.Frame
	Stack   []frame.Frame
}

// oldest gives at most so many of some entries that are older than the grace: first those whose work has ended, then the
// oldest.
func (l *Ledger) oldest(views []entryView, most int) []Opened {
	aged := make([]*entryView, 0, len(views))
	for i := range slices.Backward(views) { // they come newest first
		if views[i].age >= max(l.Options().Grace, 0) {
			aged = append(aged, &views[i])
		}
	}
	slices.SortStableFunc(aged, func(a, b *entryView) int {
		if a.ended != b.ended {
			return map[bool]int{true: -1, false: 1}[a.ended]
		}
		return cmp.Compare(b.age, a.age)
	})
	aged = aged[:min(len(aged), most)]
	list := make([]Opened, 0, len(aged))
	for _, v := range aged {
		list = append(list, l.opened(v))
	}
	return list
}

func (l *Ledger) opened(v *entryView) Opened {
	o := Opened{Scope: v.scope, Ended: v.ended, Age: v.age, Culprit: v.site.Culprit(l.Options().MainModule), Stack: v.site.Frames()}
	if l.describe != nil {
		o.What = l.describe(v.target)
	}
	return o
}
