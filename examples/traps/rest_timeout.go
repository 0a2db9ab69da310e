package traps

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
)

// restTimeout is no leak: it is a setting that makes all watches end after the timeout.
func restTimeout() Trap {
	return Trap{
		Name: "rest-timeout", Row: "S2-17", Expect: ExpectNotice,
		Title:     "the rest.Config of the manager has a Timeout of three seconds, which ends every watch",
		Culprit:   Site{Function: "rest-timeout"},
		Alone:     "changes the configuration of the manager",
		Configure: func(c *rest.Config) { c.Timeout = 3 * time.Second },
		Leak:      func(context.Context, Env) (Work, error) { return Work{}, nil },
		Twin:      func(context.Context, Env) (Work, error) { return Work{}, nil },
	}
}
