package traps

import "context"

// contextChildren hangs children on a context that lives as long as the operator, which keeps each until it is cancelled.
func contextChildren() Trap {
	return Trap{
		Name: "context-children", Row: "S2-11c", Expect: ExpectAlarm, Grows: Heap,
		Within:  1000, // its growth is the slowest of all
		Title:   "contexts are derived from the operator's own in each rollout and never cancelled",
		Culprit: siteOf(deriveContexts, ""),
		Leak:    withLife(leakContextChildren),
		Twin:    withLife(cleanContextChildren),
	}
}

// children is how many contexts a rollout derives, of 200 bytes or less each.
const children = 3000

func leakContextChildren(life context.Context) {
	deriveContexts(life)
}

func cleanContextChildren(life context.Context) {
	for _, cancel := range deriveContexts(life) {
		cancel()
	}
}

func deriveContexts(life context.Context) []context.CancelFunc {
	cancels := make([]context.CancelFunc, 0, children)
	for range children {
		_, cancel := context.WithCancel(life)
		cancels = append(cancels, cancel)
	}
	return cancels
}

// withLife makes a Start of work in reconciles that uses the context of the whole operator.
func withLife(work func(life context.Context)) Start {
	return func(life context.Context, _ Env) (Work, error) {
		return Work{Reconcile: func(_ context.Context, object Object) error {
			if !object.Deleted {
				work(life)
			}
			return nil
		}}, nil
	}
}
