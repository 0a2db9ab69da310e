package stackmatch

import (
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Label is one goroutine label, as set by runtime/pprof.
type Label struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Goroutine is one goroutine of a text dump.
type Goroutine struct {
	// ID is the runtime's number of the goroutine; 0 when the form does not print it.
	ID uint64
	// WaitReason is what the header says it is doing, without qualifiers: "chan receive", "select", "running".
	WaitReason string
	// Wait is how long it has been blocked, in whole minutes as the runtime prints it; 0 means less than a minute or
	// unknown (a garbage collection must have seen it blocked), never "young".
	Wait time.Duration
	// Labels are its pprof labels, sorted by key; nil when there are none or the form does not print them.
	Labels []Label
	// Stack is the calls, leaf first. Goroutines with equal stacks share one slice: do not change it.
	Stack []frame.Frame
	// CreatedBy is the function and line of its go statement; zero for the main goroutine, one entered from C, or forms without it.
	CreatedBy frame.Frame
	// CreatorID is the goroutine that started it; 0 when unknown (before Go 1.21) or none.
	CreatorID uint64
	// Leaked is set when the runtime's leak profile has proved that it can never run again.
	Leaked bool
	// Locked is set when it is locked to its thread.
	Locked bool
	// Durable is set for a goroutine that is durably blocked in a synctest bubble.
	Durable bool
	// Bubble is the number of its synctest bubble; 0 outside one.
	Bubble int
	// Elided is how many frames the runtime left out in the middle of Stack.
	Elided int
	// Line is where its header stands in the input, from 1.
	Line int
}
