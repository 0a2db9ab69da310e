// Package frame holds a stack frame, takes function symbols apart and picks the frame to blame.
//
// # Usage
//
//	f, origin, ok := frame.Culprit(stack, creator, frame.MainModule())
//
// # Cost
//
// Nothing here allocates but [Split] of a name with type arguments; [MainModule] reads the build information anew on
// each call, so ask once.
//
// # Concurrency
//
// All functions are pure and may be called concurrently.
//
// # Limits
//
// The main module is told by its path alone: a program built from several modules of one owner shows only one as main.
package frame
