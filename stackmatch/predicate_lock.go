package stackmatch

import (
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// lockPredicates tell what goroutines that wait for a lock wait for.
func lockPredicates() []Predicate {
	kind := func(k clusterKind) func(*Group, *Context) bool {
		return func(g *Group, in *Context) bool {
			cl := in.locks.of[g]
			return cl != nil && cl.kind == k
		}
	}
	return []Predicate{
		{Name: "lock-semaphore-cycle", Doc: "The holder of a lock waits for a semaphore whose holders want the lock, or the group is in that circle.", holds: kind(clusterSemaphore)},
		{Name: "lock-waitgroup-cycle", Doc: "A goroutine waits for a sync.WaitGroup while the goroutines that should finish wait for it, or the group is in that circle.", holds: kind(clusterWaitGroup)},
		{Name: "lock-held-by-waiter", Doc: "A goroutine in the same critical section is itself blocked for as long as its victims, or the group is one of them.", holds: kind(clusterDeadlock)},
		{Name: "lock-holder-unknown", Doc: "Goroutines have waited for a lock for two minutes or longer, and no goroutine shows that it holds it.", holds: kind(clusterOrphan)},
		{Name: "lock-held-while-working", Doc: "Goroutines wait for a lock whose holder runs or waits for the network.", holds: kind(clusterContention)},
		{Name: "lock-pile-doubled", Doc: "As lock-held-while-working, and of one of its stacks there are twice as many goroutines as in the first dump, and twenty more.", holds: func(g *Group, in *Context) bool {
			return kind(clusterContention)(g, in) && slices.ContainsFunc(in.locks.of[g].members, in.doubled)
		}},
		{Name: "lock-held-for-minutes", Doc: "Goroutines have waited two minutes or longer for a lock whose holder runs or waits for the network.", holds: kind(clusterSlow)},
		{Name: "behind-blocked-ticket", Doc: "Goroutines wait on a sync.Cond in a function in which another goroutine is blocked elsewhere, or the group is that other.", holds: func(g *Group, in *Context) bool {
			_, ok := in.piles[g]
			return ok
		}},
	}
}

// clusterKind says what the goroutines around one lock are in.
type clusterKind uint8

const (
	clusterOrphan clusterKind = iota + 1
	clusterDeadlock
	clusterSemaphore
	clusterWaitGroup
	clusterContention
	clusterSlow
)

// cluster is the goroutines around one lock: its victims, and its holder when one is seen.
type cluster struct {
	kind    clusterKind
	holder  *Group
	culprit frame.Frame
	members []*Group
}

// lockTable finds the cluster of a group.
type lockTable struct {
	of map[*Group]*cluster
}

// waiter is a group with what the predicates ask of its stack.
type waiter struct {
	group   *Group
	names   []string
	leaf    int          // the frame that waits; -1 when there is none
	section string       // its function, the one that asks for the lock; only in a lock table
	symbol  frame.Symbol // of section
}

// newWaiters takes the names of all stacks, in one piece of memory.
func newWaiters(groups []Group) []waiter {
	total := 0
	for i := range groups {
		total += len(groups[i].Stack)
	}
	out := make([]waiter, len(groups))
	names := make([]string, 0, total)
	for i := range groups {
		from := len(names)
		names = appendNames(names, groups[i].Stack)
		out[i] = waiter{group: &groups[i], names: names[from:len(names):len(names)]}
		out[i].leaf = leafIndex(out[i].names)
	}
	return out
}

// newLockTable looks at all groups when at least one waits for a lock or a WaitGroup.
func newLockTable(waiters []waiter, main string) lockTable {
	var t lockTable
	locked, grouped := false, false
	for i := range waiters {
		if w := &waiters[i]; w.leaf >= 0 {
			locked = locked || waitsForLock(w.group.WaitReason, w.names[:w.leaf])
			grouped = grouped || waitsForGroup(w.names[:w.leaf])
		}
	}
	if !locked && !grouped {
		return t
	}
	t.of = make(map[*Group]*cluster)
	var victims, others []waiter
	for i := range waiters {
		w := waiters[i]
		if w.leaf < 0 {
			continue
		}
		w.section = w.names[w.leaf]
		if waitsForLock(w.group.WaitReason, w.names[:w.leaf]) {
			w.symbol = frame.Split(w.section)
			victims = append(victims, w)
		} else {
			others = append(others, w)
		}
	}
	index := newHolderIndex(others)
	for _, c := range contenders(victims) {
		t.add(gather(c, index, main), index)
	}
	t.addWaitGroups(others, index, main)
	return t
}

// contenders sorts victims by the lock that they plausibly ask for: that of one type, or of one package when functions
// without a receiver ask too.
func contenders(victims []waiter) [][]waiter {
	free := make(map[string]bool) // packages with functions without a receiver among the victims
	for i := range victims {
		free[victims[i].symbol.Package] = free[victims[i].symbol.Package] || victims[i].symbol.Receiver == ""
	}
	at := make(map[string]int)
	var out [][]waiter
	for i := range victims {
		s := victims[i].symbol
		key := s.Package
		if !free[s.Package] {
			key += "\n" + s.Receiver
		}
		k, ok := at[key]
		if !ok {
			k = len(out)
			at[key] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], victims[i])
	}
	return out
}

// add files a cluster under its members, with those that wait for the semaphore that its holder waits for.
func (t *lockTable) add(cl *cluster, index *holderIndex) {
	if cl == nil {
		return
	}
	if cl.kind == clusterSemaphore {
		want := semaphoreSection(appendNames(nil, cl.holder.Stack))
		for _, place := range index.byFunction[want] {
			o := &index.others[place.waiter]
			if o.group != cl.holder && semaphoreSection(o.names) == want {
				cl.members = append(cl.members, o.group)
			}
		}
	}
	for _, g := range cl.members {
		t.of[g] = cl
	}
}

// waitsForLock reports whether a goroutine waits for a [sync.Mutex] or [sync.RWMutex], told by the header's reason or by the
// frames above the one that asked. Since Go 1.24 those are in internal/sync.
func waitsForLock(reason string, above []string) bool {
	switch reason {
	case "sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock":
		return true
	}
	for _, name := range above {
		switch strings.TrimPrefix(name, "internal/") {
		case "sync.(*Mutex).Lock", "sync.(*Mutex).lockSlow", "sync.(*RWMutex).Lock", "sync.(*RWMutex).RLock",
			"sync.runtime_SemacquireMutex", "sync.runtime_SemacquireRWMutex", "sync.runtime_SemacquireRWMutexR":
			return true
		}
	}
	return false
}

// gather finds the holder of the lock that victims ask for, and judges them together.
func gather(victims []waiter, index *holderIndex, main string) *cluster {
	holder, exact := index.findHolder(victims)
	cl := &cluster{}
	for i := range victims {
		cl.members = append(cl.members, victims[i].group)
	}
	oldest, count := totals(cl.members)
	if holder == nil {
		return orphanCluster(cl, &victims[0], oldest, count, main)
	}
	cl.holder = holder.group
	cl.members = append(cl.members, holder.group)
	cl.culprit = holdingFrame(holder, exact)
	cl.kind = holder.kind(exact, oldest)
	return cl
}

// orphanCluster judges victims whose holder is not seen: long waits are enough, short ones are load.
func orphanCluster(cl *cluster, lead *waiter, oldest time.Duration, count int, main string) *cluster {
	const crowd = 10
	switch {
	case oldest >= minutes(2):
		cl.kind = clusterOrphan
	case count >= crowd:
		cl.kind = clusterContention
	default:
		return nil
	}
	cl.culprit = lead.group.Stack[lead.leaf]
	if self, ok := selfDeadlock(lead); ok {
		cl.kind, cl.culprit = clusterDeadlock, self
	} else if f, _, found := frame.Culprit(lead.group.Stack, frame.Frame{}, main); found {
		cl.culprit = f
	}
	return cl
}

// selfDeadlock finds, below the call that asks for a lock, another method of the same value: it may hold the lock that
// its own callee asks for.
func selfDeadlock(w *waiter) (frame.Frame, bool) {
	if w.symbol.Receiver == "" || w.group.Oldest < minutes(2) {
		return frame.Frame{}, false
	}
	for i := w.leaf + 1; i < len(w.names); i++ {
		if !strings.HasPrefix(w.names[i], w.symbol.Package) {
			continue
		}
		s := frame.Split(w.names[i])
		if s.Package == w.symbol.Package && s.Receiver == w.symbol.Receiver && s.Name != w.symbol.Name {
			return w.group.Stack[i], true
		}
	}
	return frame.Frame{}, false
}

// totals gives the longest wait and the number of goroutines.
func totals(groups []*Group) (oldest time.Duration, count int) {
	for _, g := range groups {
		oldest = max(oldest, g.Oldest)
		count += g.Count
	}
	return oldest, count
}
