package stackmatch

import (
	"slices"
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// groupPredicates are the conditions on the group's own stack that a pattern cannot say.
func groupPredicates() []Predicate {
	return []Predicate{
		{Name: "user-code", Doc: "A frame of the stack, or the creator, is of the main module or of a library that is not part of Kubernetes.", holds: userCode},
		{Name: "user-leaf", Doc: "The frame that waits is of the main module or of a library that is not part of Kubernetes.", holds: userLeaf},
		{Name: "outside-main", Doc: "The goroutine is neither the main goroutine, nor in a package init, nor parked inside a Kubernetes library.", holds: outsideMain},
		{Name: "main-goroutine", Doc: "The stack ends in main.main or in the testing package's runner.", holds: mainGoroutine},
		{Name: "created-by-init", Doc: "The go statement stands in a package's init function.", holds: createdByInit},
		{Name: "proved-leaked", Doc: "The runtime's leak profile has marked at least one goroutine of the group: it can never run again.", holds: provedLeaked},
		{Name: "one-dead-creator", Doc: "At least ten goroutines of user code in the group were started by one goroutine that has ended.", holds: oneDeadCreator},
		{Name: "dead-creators-cohorts", Doc: "As one-dead-creator, and the goroutines were parked at different times, all of them ten minutes ago or longer.", holds: deadCreatorsCohorts},
		{Name: "locked-to-thread", Doc: "Most goroutines of the group are locked to their thread.", holds: lockedToThread},
		{Name: "poller", Doc: "The goroutine runs now and then: it polls, ticks or sleeps.", holds: func(g *Group, _ *Context) bool { return isPoller(g) }},
		{Name: "library-daemon", Doc: "All user code on the stack, the creator included, is of one library that is not part of Kubernetes.", holds: libraryDaemon},
		{Name: "stuck-sibling", Doc: "Goroutines with the same creator or the same outer function are blocked for good in a channel send.", holds: stuckSibling},
		{Name: "not-stuck-sibling", Doc: "No goroutines with the same outer function poll.", holds: func(g *Group, in *Context) bool { return !stuckSibling(g, in) }},
		{Name: "not-long-parked", Doc: "The group is not parked in a channel send, a lock or on a nil channel for five minutes.", holds: func(g *Group, _ *Context) bool { return !longParked(g) }},
		{Name: "never-woken", Doc: "Half of the group has been parked for ten minutes or longer.", holds: func(g *Group, _ *Context) bool { return g.Median >= minutes(10) }},
	}
}

func userCode(g *Group, in *Context) bool {
	_, _, ok := in.culpritOf(g)
	return ok
}

func userLeaf(g *Group, in *Context) bool {
	names := appendNames(nil, g.Stack)
	i := leafIndex(names)
	return i >= 0 && frame.OriginOf(names[i], in.main) >= frame.Library
}

func outsideMain(g *Group, in *Context) bool {
	if mainGoroutine(g, in) || createdByInit(g, in) {
		return false
	}
	names := appendNames(nil, g.Stack)
	if i := leafIndex(names); i >= 0 && frame.OriginOf(names[i], in.main) == frame.Kubernetes {
		return false
	}
	return userCode(g, in)
}

func mainGoroutine(g *Group, _ *Context) bool {
	return slices.ContainsFunc(g.Stack, func(f frame.Frame) bool {
		switch f.Function {
		case "main.main", "testing.tRunner", "testing.(*M).Run", "runtime.main":
			return true
		}
		return strings.HasPrefix(f.Function, "main.init.")
	})
}

func createdByInit(g *Group, _ *Context) bool {
	name := frame.Split(g.CreatedBy.Function)
	return name.Name == "init" && name.Receiver == "" && name.Package != "runtime"
}

func provedLeaked(g *Group, _ *Context) bool { return g.Leaked > 0 }

// longParked reports whether a group waits for something that a peer does not give.
func longParked(g *Group) bool {
	return g.Oldest >= minutes(5) && (strings.HasPrefix(g.WaitReason, "chan send") || strings.HasSuffix(g.WaitReason, "(nil chan)") ||
		strings.HasPrefix(g.WaitReason, "sync."))
}

// oneDeadCreator reports whether one goroutine that is gone has started most of a group of user code.
func oneDeadCreator(g *Group, in *Context) bool {
	const enough = 10
	if g.Count < enough || len(g.Members) == 0 || !userCode(g, in) {
		return false
	}
	children := make(map[uint64]int)
	for _, m := range g.Members {
		if m >= 0 && m < len(in.members) {
			children[in.members[m].CreatorID]++
		}
	}
	for creator, n := range children {
		if creator <= 1 || n < enough {
			continue
		}
		if _, alive := in.byID[creator]; !alive {
			return true
		}
	}
	return false
}

// deadCreatorsCohorts is oneDeadCreator for goroutines that were parked at different times and were not woken since. A
// pool of workers whose starter has ended was parked at one time, or some of it has just worked.
func deadCreatorsCohorts(g *Group, in *Context) bool {
	if g.Oldest < minutes(10) || !oneDeadCreator(g, in) {
		return false
	}
	youngest := g.Oldest
	for _, m := range g.Members {
		if m >= 0 && m < len(in.members) {
			youngest = min(youngest, in.members[m].Wait)
		}
	}
	return youngest >= minutes(10) && youngest*5 <= g.Oldest*4
}

// isPoller reports whether a stack belongs to something that runs at intervals.
func isPoller(g *Group) bool {
	if g.WaitReason == "sleep" {
		return true
	}
	for _, f := range g.Stack {
		rest, ok := strings.CutPrefix(plainName(f.Function), "k8s.io/apimachinery/pkg/util/wait.")
		if !ok {
			continue
		}
		for _, start := range []string{"Poll", "loopConditionUntilContext", "poll", "WaitFor", "Until", "JitterUntil", "BackoffUntil", "NonSlidingUntil"} {
			if strings.HasPrefix(rest, start) {
				return true
			}
		}
	}
	return false
}

// stuckSibling reports whether goroutines that were started for the same function are blocked in a send that nobody
// receives while others of them are not; it holds for both.
func stuckSibling(g *Group, in *Context) bool {
	if len(in.roots) == 0 {
		return false
	}
	root, ok := userRoot(g, in.main)
	if !ok {
		return false
	}
	n := in.roots[root]
	if blockedInSend(g) {
		return n.free > 0
	}
	return n.stuck > 0
}

// siblings is how many groups with one outer function are blocked in a send, and how many are not.
type siblings struct{ stuck, free int }

// newRoots counts the groups of each outer function; nil when none is blocked in a send, which most dumps are.
func newRoots(groups []Group, main string) map[string]siblings {
	if !slices.ContainsFunc(groups, func(g Group) bool { return blockedInSend(&g) }) {
		return nil
	}
	out := make(map[string]siblings)
	for i := range groups {
		root, ok := userRoot(&groups[i], main)
		if !ok {
			continue
		}
		n := out[root]
		if blockedInSend(&groups[i]) {
			n.stuck++
		} else {
			n.free++
		}
		out[root] = n
	}
	return out
}

// blockedInSend reports whether a group has been parked in a channel send for minutes.
func blockedInSend(g *Group) bool {
	return strings.HasPrefix(g.WaitReason, "chan send") && g.Oldest >= minutes(5)
}

// userRoot is the outermost function of user code on a stack: what its go statement started.
func userRoot(g *Group, main string) (string, bool) {
	for _, f := range slices.Backward(g.Stack) {
		name := plainName(f.Function)
		if frame.OriginOf(name, main) >= frame.Library {
			return name, true
		}
	}
	return "", false
}

// libraryDaemon reports whether a library started a goroutine for itself: no frame is the program's, and its outermost
// frame and its creator, when that is known, are of one library.
func libraryDaemon(g *Group, in *Context) bool {
	_, origin, ok := in.culpritOf(g)
	if !ok || origin != frame.Library {
		return false
	}
	root, found := userRoot(g, in.main)
	if !found {
		return false
	}
	creator := plainName(g.CreatedBy.Function)
	return creator == "" || sameLibrary(frame.Package(root), frame.Package(creator))
}

// sameLibrary reports whether two packages are of one repository, told by the first three elements of their paths.
func sameLibrary(a, b string) bool {
	return firstElements(a) == firstElements(b)
}

func firstElements(pkg string) string {
	const enough = 3
	at := 0
	for range enough {
		i := strings.IndexByte(pkg[at:], '/')
		if i < 0 {
			return pkg
		}
		at += i + 1
	}
	return pkg[:at-1]
}

// lockedToThread reports whether most of a group holds a thread.
func lockedToThread(g *Group, in *Context) bool {
	n := 0
	for _, m := range g.Members {
		if m >= 0 && m < len(in.members) && in.members[m].Locked {
			n++
		}
	}
	return n*2 > g.Count
}
