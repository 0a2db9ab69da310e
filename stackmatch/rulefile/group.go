package rulefile

import (
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Bounds of what a condition sees. The runtime itself prints no more than 100 frames and profiles have at most 128.
const (
	maxFrames = 128
	maxLabels = 32
	// typicalName is the length of a function's name that the cost estimate goes by.
	typicalName = 128
)

// controllerLabel is the label under which package leakguard notes the controller of a goroutine.
const controllerLabel = "leakguard_controller"

// Group is what a condition sees as "group". The names in the cel tags are those that conditions use.
type Group struct {
	// Count is how many goroutines the group has, Leaked how many of them the runtime's leak profile has marked.
	Count  int64 `cel:"count"`
	Leaked int64 `cel:"leaked"`
	// Wait is how long the oldest has waited, MedianWait the middle one; 0 when unknown, as in cheap profiles.
	Wait       time.Duration `cel:"wait"`
	MedianWait time.Duration `cel:"medianWait"`
	// WaitReason is what they wait for: "chan send", "select"; empty when unknown.
	WaitReason string `cel:"waitReason"`
	// Frames are the functions of the stack, leaf first, as dumps print them.
	Frames []string `cel:"frames"`
	// CreatedBy is the function with the go statement; empty when unknown. Root is the function that it started.
	CreatedBy string `cel:"createdBy"`
	Root      string `cel:"root"`
	// Culprit is the function to blame and Origin whose code it is: "main", "library" and so on; both empty when the code
	// to fix is in no frame.
	Culprit string `cel:"culprit"`
	Origin  string `cel:"origin"`
	// Labels are the goroutine labels; Controller is the one that package leakguard sets, empty when there is none.
	Labels     map[string]string `cel:"labels"`
	Controller string            `cel:"controller"`
	// SlopePerMinute is the growth in goroutines per minute, 0 when SlopeKnown is false; see [Options].
	SlopePerMinute float64 `cel:"slopePerMinute"`
	SlopeKnown     bool    `cel:"slopeKnown"`
	// Grown is the predicate of that name: the stack has clearly more goroutines than in the first of several dumps.
	Grown bool `cel:"grown"`
}

// uses says which costly fields of a group a condition asks for, so that only those are made.
type uses struct{ frames, labels, slope, grown bool }

// note marks a field as used.
func (u *uses) note(field string) {
	switch field {
	case "frames":
		u.frames = true
	case "labels":
		u.labels = true
	case "slopePerMinute", "slopeKnown":
		u.slope = true
	case "grown":
		u.grown = true
	}
}

// view makes what a condition sees of a group.
func (c *condition) view(g *stackmatch.Group, in *stackmatch.Context, o *Options) *Group {
	out := &Group{
		Count: int64(g.Count), Leaked: int64(g.Leaked), Wait: g.Oldest, MedianWait: g.Median, WaitReason: g.WaitReason,
		CreatedBy: g.CreatedBy.Function, Root: g.Root.Function,
	}
	if out.Root == "" {
		out.Root = frame.Root(g.Stack).Function
	}
	if !g.Culprit.IsZero() {
		out.Culprit, out.Origin = g.Culprit.Function, g.CulpritOrigin.String()
	}
	out.Controller, _ = g.Label(controllerLabel)
	if c.uses.frames {
		out.Frames = functions(g.Stack)
	}
	if c.uses.labels {
		out.Labels = make(map[string]string, len(g.Labels))
		for _, l := range g.Labels[:min(len(g.Labels), maxLabels)] {
			out.Labels[l.Key] = l.Value
		}
	}
	switch {
	case !c.uses.slope:
	case o.Slope != nil:
		out.SlopePerMinute, out.SlopeKnown = o.Slope(g, in)
	default:
		out.SlopePerMinute, out.SlopeKnown = in.PerMinute(g)
	}
	if c.uses.grown {
		out.Grown = c.grown.Holds(g, in)
	}
	return out
}

// functions gives the functions of a stack, of a very deep one the inner and outer ends.
func functions(stack []frame.Frame) []string {
	out := make([]string, 0, min(len(stack), maxFrames))
	for i := range stack {
		if len(stack) > maxFrames && i >= maxFrames/2 && i < len(stack)-maxFrames/2 {
			continue
		}
		out = append(out, stack[i].Function)
	}
	return out
}
