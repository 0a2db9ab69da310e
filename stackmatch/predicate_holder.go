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

// holderIndex finds goroutines by the functions and types on their stacks, from the frame that waits on.
type holderIndex struct {
	others     []waiter
	byFunction map[string][]place
	byReceiver map[string][]place // package and receiver
	byPackage  map[string][]place // functions with a receiver
}

// place is a frame of a waiter.
type place struct{ waiter, frame int }

// maxHolders bounds how many goroutines are looked at as the holder of one victim's lock: the holder is the odd one,
// and a crowd has none.
const maxHolders = 256

func newHolderIndex(others []waiter) *holderIndex {
	x := &holderIndex{
		others: others, byFunction: make(map[string][]place), byReceiver: make(map[string][]place), byPackage: make(map[string][]place),
	}
	for i := range others {
		o := &others[i]
		for f := o.leaf; f < len(o.names); f++ {
			p := place{i, f}
			x.byFunction[o.names[f]] = append(x.byFunction[o.names[f]], p)
			if s := frame.Split(o.names[f]); s.Receiver != "" {
				x.byReceiver[s.Package+"\n"+s.Receiver] = append(x.byReceiver[s.Package+"\n"+s.Receiver], p)
				x.byPackage[s.Package] = append(x.byPackage[s.Package], p)
			}
		}
	}
	return x
}

// findHolder looks for the goroutine that is inside the critical section that a victim wants to enter. exact means
// that it is in the very function that the victim is in, past the call that locks; else it is in another method of the
// same type, or for a function without a receiver of a type of its package. The rarest and longest blocked candidate
// wins: it is the odd one, not one of the crowd.
func (x *holderIndex) findHolder(victims []waiter) (best *lockHolder, exact bool) {
	for i := range victims {
		v := &victims[i]
		for _, p := range first(x.byFunction[v.section]) {
			if h := x.inSection(v, p); h != nil && (best == nil || !exact || h.better(best)) {
				best, exact = h, true
			}
		}
		for _, p := range first(x.near(v)) {
			if exact {
				break
			}
			if h := x.inType(v, p); h != nil && (best == nil || h.better(best)) {
				best = h
			}
		}
	}
	return best, exact
}

// near gives the places in methods of the victim's type, or of all types of its package when it is in no method.
func (x *holderIndex) near(v *waiter) []place {
	if v.symbol.Receiver == "" {
		return x.byPackage[v.symbol.Package]
	}
	return x.byReceiver[v.symbol.Package+"\n"+v.symbol.Receiver]
}

// inSection gives the goroutine of a place in the victim's own function as a holder; nil when it cannot be one. At the
// leaf, too: a holder may do its own work in the function that locked. But not when it idles there.
func (x *holderIndex) inSection(v *waiter, p place) *lockHolder {
	o := &x.others[p.waiter]
	if p.frame == o.leaf && idle(o) {
		return nil
	}
	return &lockHolder{waiter: *o, victim: v, at: p.frame}
}

// inType gives the goroutine of a place in another method of the victim's type as a holder; nil when it cannot be one.
func (x *holderIndex) inType(v *waiter, p place) *lockHolder {
	o := &x.others[p.waiter]
	if !mayHold(v, o) {
		return nil
	}
	return &lockHolder{waiter: *o, victim: v, at: p.frame}
}

// first bounds a list of candidates.
func first(places []place) []place { return places[:min(len(places), maxHolders)] }

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

// circular reports whether the holder is parked where its victims came from, or, in a dump without reasons, has frames
// that show that it is parked at all: without them it may well run.
func (a *lockHolder) circular() bool {
	if a.group.WaitReason == "" {
		return a.leaf > 0
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
func (t *lockTable) addWaitGroups(others []waiter, index *holderIndex, main string) {
	senders := stuckSenders(others)
	if len(senders) == 0 {
		return
	}
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
		for _, o := range senders[w.names[at]] {
			if o.group != w.group && (w.group.Oldest >= minutes(2) || o.group.Oldest >= minutes(2)) {
				cl.members = append(cl.members, o.group)
			}
		}
		if len(cl.members) > 1 {
			t.add(cl, index)
		}
	}
}

// stuckSenders files goroutines that are parked in a channel send under the function whose go statement started them,
// told by the creator or by the closure's name.
func stuckSenders(others []waiter) map[string][]*waiter {
	var out map[string][]*waiter
	for i := range others {
		o := &others[i]
		if !strings.HasPrefix(o.group.WaitReason, "chan send") {
			continue
		}
		if out == nil {
			out = make(map[string][]*waiter)
		}
		starter := plainName(o.group.CreatedBy.Function)
		if starter == "" || frame.IsSpawner(starter) {
			starter = withoutClosure(plainName(frame.Root(o.group.Stack).Function))
		}
		out[starter] = append(out[starter], o)
	}
	return out
}

// pile is goroutines behind one that is blocked.
type pile struct {
	root *Group
}

// newPiles finds goroutines that wait on a [sync.Cond] for their turn while one that has its turn is blocked elsewhere.
func newPiles(waiters []waiter) map[*Group]pile {
	turns := newTurns(waiters)
	if turns == nil {
		return nil
	}
	out := make(map[*Group]pile)
	for i := range waiters {
		w := &waiters[i]
		if w.leaf < 0 || !strings.HasPrefix(w.group.WaitReason, "chan send") && w.group.WaitReason != "" {
			continue
		}
		for _, name := range w.names[w.leaf+1:] {
			if g := turns[name]; g != nil && g != w.group {
				out[g], out[w.group] = pile{root: w.group}, pile{root: w.group}
			}
		}
	}
	return out
}

// newTurns finds the crowds that wait on a [sync.Cond] for their turn, by the function in which they wait; nil when there
// is none.
func newTurns(waiters []waiter) map[string]*Group {
	const enough = 10
	var turns map[string]*Group
	for i := range waiters {
		w := &waiters[i]
		if w.group.Count < enough || w.leaf < 0 || !slices.Contains(w.names[:w.leaf], "sync.(*Cond).Wait") {
			continue
		}
		if turns == nil {
			turns = make(map[string]*Group)
		}
		turns[w.names[w.leaf]] = w.group
	}
	return turns
}
