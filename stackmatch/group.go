package stackmatch

import (
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Group is all goroutines with the same stack and labels; arguments, addresses and minutes do not matter.
type Group struct {
	// ID is a hash of the stack's functions and lines and of the labels. It is equal for equal groups of one program build
	// read by any reader of this package that prints the same frames.
	ID uint64
	// Stack is the calls, leaf first, without the runtime's parking frames; shared between groups: do not change it.
	Stack []frame.Frame
	// Labels are the pprof labels, sorted by key.
	Labels []Label
	// CreatedBy is the go statement that started them; zero when the form does not print it.
	CreatedBy frame.Frame
	// Root is the function they were started for: the outermost frame behind spawn helpers such as wait.(*Group).Start and
	// sync.(*WaitGroup).Go, whose names as a creator say nothing. Set by GroupBy; zero for a stack of nothing else.
	Root frame.Frame
	// WaitReason is the header's wait reason, or for profiles, which have none, the one read from the leaf frames:
	// "chan send" for runtime.chansend1 and so on; empty when neither tells.
	WaitReason string
	// Count is how many goroutines the group has, at least 1.
	Count int
	// Oldest and Median are the longest and the middle wait of those whose wait is known, in whole minutes; 0 when none is.
	Oldest, Median time.Duration
	// Leaked is how many of them the runtime's leak profile has marked.
	Leaked int
	// Culprit is the frame to blame (see [frame.Culprit]); zero when the code to fix is in no frame.
	Culprit frame.Frame
	// CulpritOrigin says whose code Culprit is; only meaningful when Culprit is not zero.
	CulpritOrigin frame.Origin
	// Members are indexes into Dump.Goroutines, ascending; nil for groups read from a profile.
	Members []int
}

// Label gives the value of a label; ok is false when the group has none of that key.
func (g *Group) Label(key string) (value string, ok bool) {
	for _, l := range g.Labels {
		if l.Key == key {
			return l.Value, true
		}
	}
	return "", false
}
