package traps

import (
	"context"
	"time"
)

// customContext derives from a type that the context package does not know: a goroutine has to watch it for each child.
func customContext() Trap {
	return Trap{
		Name: "custom-context", Row: "S2-11d", Expect: ExpectAlarm, Grows: Goroutines, Controller: LeakyController,
		Rules:   []string{"growth"},
		Title:   "context.WithCancel on a Context type of one's own, never cancelled: a goroutine each",
		Culprit: Site{Function: "context.(*cancelCtx).propagateCancel.func2"},
		Leak:    withLife(leakCustomContext),
		Twin:    withLife(cleanCustomContext),
	}
}

// tenantContext is such a type.
type tenantContext struct{ done <-chan struct{} }

func (tenantContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (c tenantContext) Done() <-chan struct{}                 { return c.done }
func (tenantContext) Err() error                              { return nil }
func (tenantContext) Value(any) any                           { return nil }

func leakCustomContext(context.Context) {
	_, cancel := context.WithCancel(tenantContext{make(chan struct{})})
	_ = cancel // this is the trap
}

func cleanCustomContext(context.Context) {
	_, cancel := context.WithCancel(tenantContext{make(chan struct{})})
	cancel()
}
