package stackmatch

import (
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// lockHolder is a goroutine that seems to hold the lock that a victim asks for.
type lockHolder struct {
	waiter
	victim *waiter
	at     int // the frame in which it holds the lock
}

// findHolder looks for the goroutine that is inside the critical section that a victim wants to enter. exact means
// that it is in the very function that the victim is in, past the call that locks; else it is in another method of the
// same type. The rarest and longest blocked candidate wins: it is the odd one, not one of the crowd.
func findHolder(victims, others []waiter) (best *lockHolder, exact bool) {
	for i := range victims {
		v := &victims[i]
		for j := range others {
			o := &others[j]
			at, same := holdsSection(v, o)
			if at < 0 || !same && !mayHold(v, o) {
				continue
			}
			candidate := &lockHolder{waiter: *o, victim: v, at: at}
			if best == nil || same && !exact || same == exact && candidate.better(best) {
				best, exact = candidate, same
			}
		}
	}
	return best, exact
}

// holdsSection finds the frame of o that is in v's critical section; -1 when there is none.
func holdsSection(v, o *waiter) (at int, exact bool) {
	// The leaf counts too: a holder may do its own work in the function that locked.
	if i := slices.Index(o.names[o.leaf:], v.section); i >= 0 && (i > 0 || !idle(o)) {
		return o.leaf + i, true
	}
	for i := o.leaf; i < len(o.names); i++ {
		if !strings.HasPrefix(o.names[i], v.symbol.Package) {
			continue
		}
		s := frame.Split(o.names[i])
		if s.Package != v.symbol.Package || s.Closure != "" && s.Receiver == "" {
			continue
		}
		if s.Receiver != "" && (s.Receiver == v.symbol.Receiver || v.symbol.Receiver == "") {
			return i, false
		}
	}
	return -1, false
}

// mayHold reports whether a goroutine that is merely in another method of the type can be the holder: it does not idle
// in a loop, and has been there at least as long as the victim, as far as both are known.
func mayHold(v, o *waiter) bool {
	return !idle(o) && (o.group.Oldest == 0 || v.group.Oldest == 0 || o.group.Oldest+minutes(1) >= v.group.Oldest)
}

// idle reports whether a goroutine waits at the top of its own loop, holding nothing: its first frame of its own is
// where it selects, receives or waits on a condition.
func idle(o *waiter) bool {
	switch o.group.WaitReason {
	case "select", "chan receive", "sync.Cond.Wait", "sleep":
		return o.leaf+1 >= len(o.names) || o.leaf+1 == len(o.names)-1
	}
	return slices.Contains(o.names[:o.leaf], "sync.(*Cond).Wait")
}

// better reports whether a is a likelier holder than b.
func (a *lockHolder) better(b *lockHolder) bool {
	if a.group.Count != b.group.Count {
		return a.group.Count < b.group.Count
	}
	return a.group.Oldest > b.group.Oldest
}

// kind says what the holder and its victims are in.
func (a *lockHolder) kind(exact bool, oldest time.Duration) clusterKind {
	stuck := oldest >= minutes(2)
	if exact || stuck {
		switch {
		case semaphoreSection(a.names) != "":
			return clusterSemaphore
		case waitsForGroup(a.names[:a.leaf]):
			return clusterWaitGroup
		}
	}
	switch {
	case a.works() && stuck:
		return clusterSlow
	case a.works():
		return clusterContention
	case stuck, exact && a.circular():
		return clusterDeadlock
	}
	return clusterContention
}

// circular reports whether the holder is parked where its victims came from, or, in a dump without minutes and
// reasons, is parked at all.
func (a *lockHolder) circular() bool {
	if a.group.WaitReason == "" {
		return true
	}
	return strings.HasPrefix(a.group.WaitReason, "chan") && slices.Contains(a.victim.names[a.victim.leaf:], a.names[a.leaf])
}

// works reports whether the holder runs, sleeps or waits for the network: it will let go.
func (a *lockHolder) works() bool {
	switch a.group.WaitReason {
	case "running", "runnable", "IO wait", "sleep", "syscall":
		return true
	}
	return slices.ContainsFunc(a.names, func(name string) bool {
		return strings.HasPrefix(name, "net/http.(*Client).") || strings.HasPrefix(name, "net/http.(*persistConn).roundTrip") ||
			strings.HasPrefix(name, "internal/poll.") || strings.HasPrefix(name, "syscall.")
	})
}

// semaphoreSection is the function that waits for a weighted semaphore; "" when the stack does not.
func semaphoreSection(names []string) string {
	i := leafIndex(names)
	if i < 0 || i+1 >= len(names) || names[i] != "golang.org/x/sync/semaphore.(*Weighted).Acquire" {
		return ""
	}
	return names[i+1]
}

// waitsForGroup reports whether the frames above a leaf wait for a [sync.WaitGroup].
func waitsForGroup(above []string) bool {
	return slices.Contains(above, "sync.(*WaitGroup).Wait") || slices.Contains(above, "sync.runtime_SemacquireWaitGroup")
}

// holdingFrame is the frame to blame: in the exact case the first one, leaf first, that the holder has and its victim has
// not, since what they share is only where they meet; else the one in which it holds the lock.
func holdingFrame(h *lockHolder, exact bool) frame.Frame {
	at := h.at
	if exact {
		for i := h.leaf; i < h.at; i++ {
			if !slices.Contains(h.victim.names, h.names[i]) && frame.OriginOf(h.names[i], "") >= frame.Library {
				at = i
				break
			}
		}
	}
	f := h.group.Stack[at]
	f.Function = withoutClosure(f.Function)
	return f
}

// withoutClosure gives the function that a closure stands in.
func withoutClosure(function string) string {
	s := frame.Split(function)
	if s.Closure == "" {
		return function
	}
	return strings.TrimSuffix(function, "."+s.Closure)
}

// addWaitGroups finds goroutines that wait for a [sync.WaitGroup], or an errgroup, whose workers, started by the same
// function, are blocked in a channel send: nobody receives until the wait is over.
func (t *lockTable) addWaitGroups(others []waiter, main string) {
	for i := range others {
		w := &others[i]
		if !waitsForGroup(w.names[:w.leaf]) || t.of[w.group] != nil {
			continue
		}
		at := slices.IndexFunc(w.names, func(name string) bool { return frame.OriginOf(name, main) >= frame.Library })
		if at < 0 {
			continue
		}
		cl := &cluster{kind: clusterWaitGroup, holder: w.group, culprit: w.group.Stack[at], members: []*Group{w.group}}
		for j := range others {
			o := &others[j]
			if o.group != w.group && startedBy(o, w.names[at]) && stuckSend(o, w) {
				cl.members = append(cl.members, o.group)
			}
		}
		if len(cl.members) > 1 {
			for _, g := range cl.members {
				t.of[g] = cl
			}
		}
	}
}

// startedBy reports whether a function's go statement started a goroutine, told by the creator or by the closure's name.
func startedBy(o *waiter, function string) bool {
	if plainName(o.group.CreatedBy.Function) == function {
		return true
	}
	return slices.ContainsFunc(o.names, func(name string) bool { return strings.HasPrefix(name, function+".func") })
}

// stuckSend reports whether a worker is parked in a send, for as long as the one that waits for it.
func stuckSend(o, w *waiter) bool {
	if o.group.WaitReason == "" {
		return false
	}
	return strings.HasPrefix(o.group.WaitReason, "chan send") && (w.group.Oldest >= minutes(2) || o.group.Oldest >= minutes(2))
}

// pile is goroutines behind one that is blocked.
type pile struct {
	root *Group
}

// newPiles finds goroutines that wait on a [sync.Cond] for their turn while one that has its turn is blocked elsewhere.
func newPiles(waiters []waiter) map[*Group]pile {
	const enough = 10
	var out map[*Group]pile
	for i := range waiters {
		w := &waiters[i]
		if w.group.Count < enough || w.leaf < 0 || !slices.Contains(w.names[:w.leaf], "sync.(*Cond).Wait") {
			continue
		}
		for j := range waiters {
			other := &waiters[j]
			if j == i || other.leaf < 0 || !strings.HasPrefix(other.group.WaitReason, "chan send") && other.group.WaitReason != "" {
				continue
			}
			if slices.Index(other.names, w.names[w.leaf]) > other.leaf {
				if out == nil {
					out = make(map[*Group]pile)
				}
				out[w.group], out[other.group] = pile{root: other.group}, pile{root: other.group}
			}
		}
	}
	return out
}
