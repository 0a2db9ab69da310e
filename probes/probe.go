package probes

import (
	"context"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Probe counts one kind of resource.
type Probe interface {
	// Name is what reports and metrics call it: lower case words joined by underscores, unique in a [Set].
	Name() string
	// Read appends what it counts now to dst and returns it. It is called on a goroutine of its own, one call at a
	// time, must not block, and may give nothing.
	Read(ctx context.Context, dst []Reading) []Reading
}

// Reading is one count of a resource at one moment.
type Reading struct {
	// Probe is the name of the probe; [Set.Read] fills it in.
	Probe string
	// Resource says what is counted: "watches open after their reconcile", "informers". Few and fixed.
	Resource string
	// Scope is the scope the resource belongs to, such as a controller; empty when it is the process's.
	Scope string
	// Count is how many there are.
	Count float64
	// InAll is how many are open that were made at the same place, which can be more than Count, as not all of them may be known to
	// be lost yet. What serves them, such as the goroutines of watches, is explained by this reading. Zero means Count.
	InAll float64
	// Covariate is the number of things that explain Count, such as live objects; negative when there is none.
	Covariate float64
	// Leaked is set by a probe that keeps exact accounts: each unit is already known to be lost. Then no trend is needed. A
	// count that only grows is never leaked, however long it has grown.
	Leaked bool
	// Climbing is set by a probe that has seen the count grow, again and again and without a fall, beyond what Covariate
	// explains, and no long time ago: a trend, and no proof. See [Climb].
	Climbing bool
	// Total is set when Count never falls, because it is how often something has happened since the process began. That it
	// grows says nothing, so growth of it is worth a line and no alarm.
	Total bool
	// Bounded is set by a probe that knows that each unit ends by itself, though nobody ends it: their number is the rate at
	// which they come times how long each lives. That is worth a line and no alarm.
	Bounded bool
	// Listed is set by a probe that finds the count worth a line and, by the number alone, no alarm.
	Listed bool
	// Culprit is where the resource was made; zero when unknown.
	Culprit frame.Frame
	// Stack is the calls that made one of them, leaf first; nil when unknown.
	Stack []frame.Frame
	// Shown is set for a number that is only there to be looked at, such as a total that grows by its nature. It is not followed
	// for growth.
	Shown bool
	// Open is some of what is counted, at most 16: those whose work has ended first, then the oldest. It is nil for what is
	// not followed one by one.
	Open []Opened
	// Trap is the row of the table of traps this resource belongs to; may be empty.
	Trap string
	// Reason and Advice are sentences for a person; empty leaves them to the detector.
	Reason, Advice string
}
