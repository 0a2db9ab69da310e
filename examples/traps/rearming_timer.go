package traps

import (
	"context"
	"time"
)

// rearmingTimer never parks a goroutine: a new one runs for a moment at each tick of each chain.
func rearmingTimer() Trap {
	return Trap{
		Name: "rearming-timer", Row: "S1-01b", Expect: ExpectListed, Grows: Counted,
		Rules:   []string{"counter"},
		Title:   "Reconcile starts a time.AfterFunc that starts itself again for ever",
		Culprit: Site{Function: "goroutines created a minute"},
		Leak:    withLife(leakRearmingTimer),
		Twin:    withLife(cleanRearmingTimer),
	}
}

func leakRearmingTimer(life context.Context) {
	rearm(life)
}

func cleanRearmingTimer(life context.Context) {
	life, cancel := context.WithCancel(life)
	defer cancel()
	rearm(life)
}

func rearm(life context.Context) {
	time.AfterFunc(poll, func() {
		if life.Err() == nil {
			rearm(life)
		}
	})
}
