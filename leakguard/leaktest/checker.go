package leaktest

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// checker looks for the goroutines that one check is about.
type checker struct {
	config *config
	pack   []Entry
	// scope is what the check is about; all is set for one that is about all goroutines which no other scope owns.
	scope scope
	all   bool
	// everything is set at the end of a package: other scopes' goroutines count too.
	everything bool
	// function is the full name of the test's function, for goroutines without label; empty when unknown.
	function string
	// baseline counts the goroutines without a scope at the start, by group.
	baseline map[uint64]int
	// known are the ids of goroutines that were there at the start and descend from the test, reported already.
	known map[uint64]bool
}

func newChecker(c *config, s scope) *checker {
	k := &checker{config: c, scope: s, pack: alwaysIgnored()}
	if c.pack {
		k.pack = Pack()
	}
	return k
}

// settled waits until nothing is left or the time is over, and gives what is left then.
func (k *checker) settled() ([]Leak, time.Duration, error) {
	start := time.Now()
	pause := 50 * time.Microsecond
	for try := 0; ; try++ {
		quiet, err := k.quiet()
		if err != nil {
			return nil, time.Since(start), err
		}
		over := time.Since(start) >= k.config.settle
		// A profile cannot tell creators, so a suppression by creator needs the dump; it stops the world and so is asked less often.
		if !quiet && (over || try >= 6) {
			leaks, err := k.left()
			if err != nil || len(leaks) == 0 || over {
				return leaks, time.Since(start), err
			}
		}
		if quiet {
			return nil, time.Since(start), nil
		}
		k.hurry(try)
		rest := k.config.settle - time.Since(start)
		<-time.After(min(pause, max(rest, 0)))
		pause = min(2*pause, maxPause)
	}
}

// maxPause is the longest pause between two looks.
const maxPause = 100 * time.Millisecond

// hurry makes what ends by itself end sooner: cleanups and finalizers run after a collection, idle connections of the default
// transport belong to nobody.
func (k *checker) hurry(try int) {
	if try%3 == 1 {
		runtime.GC()
	}
	if t, ok := http.DefaultTransport.(interface{ CloseIdleConnections() }); ok && try%2 == 0 {
		t.CloseIdleConnections()
	}
	for _, f := range k.config.settling {
		f()
	}
}

// quiet reports by the cheap profile whether nothing is left that could be this check's. It may say no too often.
func (k *checker) quiet() (bool, error) {
	quiet := true
	err := profileGroups(func(groups []stackmatch.Group) {
		elders.shrink(groups)
		limits := limits{}
		for i := range groups {
			g := &groups[i]
			if n := k.candidates(g); n > 0 && !k.ignored(g, n, limits) {
				quiet = false
				return
			}
		}
	})
	return quiet, err
}

// candidates is how many goroutines of a group of the profile the check may be about.
func (k *checker) candidates(g *stackmatch.Group) int {
	s, labelled := scopeOf(g.Labels)
	switch {
	case labelled && s.isChecking():
		return 0
	case k.everything:
		return g.Count - k.baseline[g.ID]
	case labelled && k.scope.owns(s):
		return g.Count - reported.count(g.ID)
	case labelled && (!k.all || !k.surrounds(s)):
		return 0
	}
	return g.Count - k.baseline[g.ID]
}

// surrounds reports whether s is a scope of the test itself, such as that of VerifyTestMain, or of a test that it is in:
// what a test starts carries such a label until it gets its own.
func (k *checker) surrounds(s scope) bool {
	return s.name == k.scope.name || strings.HasPrefix(k.scope.name, s.name+"/")
}

// limits counts what entries with AtMost have ignored in one look, in the look at a whole package for each test: every
// one may have left its own idle connection.
type limits map[string]int

// ignored reports whether n goroutines of a group are ignored.
func (k *checker) ignored(g *stackmatch.Group, n int, used limits) bool {
	for i := range k.pack {
		e := &k.pack[i]
		if !e.matches(g) {
			continue
		}
		if e.AtMost == 0 {
			return true
		}
		key := e.ID
		if s, ok := scopeOf(g.Labels); ok && k.everything {
			key += " " + s.name
		}
		if used[key]+n <= e.AtMost {
			used[key] += n
			return true
		}
	}
	return slices.ContainsFunc(k.config.ignores, func(s *suppression) bool { return !s.expired && s.matches(g) })
}

// left gives, from a dump, the goroutines that are left.
func (k *checker) left() ([]Leak, error) {
	goroutines, err := dumpGoroutines()
	if err != nil {
		return nil, err
	}
	if len(goroutines) == 0 {
		return nil, nil
	}
	family := descendants(goroutines)
	used := limits{}
	var leaks []Leak
	for i := range goroutines[1:] {
		g := &goroutines[i+1]
		if k.config.current[g.ID] || k.known[g.ID] || reported.has(g.ID) && !k.everything || !k.concerns(g, family[g.ID]) {
			continue
		}
		group := groupOf(g)
		if k.ignored(&group, 1, used) {
			continue
		}
		leaks = append(leaks, k.leak(g, &group))
	}
	return leaks, nil
}

// concerns reports whether the check is about a goroutine. own tells that it descends from the caller's.
func (k *checker) concerns(g *stackmatch.Goroutine, own bool) bool {
	s, ok := scopeOf(g.Labels)
	if ok && s.isChecking() {
		return false
	}
	if k.everything {
		return true
	}
	if ok {
		return k.scope.owns(s) || k.all && k.surrounds(s)
	}
	return k.all || own || k.function != "" && startedIn(g, k.function)
}

// startedIn reports whether a goroutine was started for a function literal in a function, or by the function itself. It finds
// the callbacks of [time.AfterFunc] and cleanups, which inherit no label.
func startedIn(g *stackmatch.Goroutine, function string) bool {
	root := frame.Root(g.Stack).Function
	return strings.HasPrefix(root, function+".") || g.CreatedBy.Function == function || strings.HasPrefix(g.CreatedBy.Function, function+".")
}

// descendants marks the goroutines whose line of creators leads over living ones to the first.
func descendants(goroutines []stackmatch.Goroutine) map[uint64]bool {
	creator := make(map[uint64]uint64, len(goroutines))
	for i := range goroutines {
		creator[goroutines[i].ID] = goroutines[i].CreatorID
	}
	self := goroutines[0].ID
	own := map[uint64]bool{}
	for id := range creator {
		seen := 0
		for at := creator[id]; at != 0 && seen <= len(creator); at = creator[at] {
			if at == self {
				own[id] = true
				break
			}
			seen++
		}
	}
	return own
}

// prove asks the runtime which of the goroutines can never run again.
func (k *checker) prove(leaks []Leak) (asked bool) {
	if !k.config.proof || !stackmatch.HasLeakProfile() || len(leaks) == 0 {
		return false
	}
	var profile bytes.Buffer
	// The runtime marks leaks while it writes the profile; after that a dump shows the marks by goroutine.
	if _, err := stackmatch.CaptureLeaked(io.Writer(&profile)); err != nil {
		return false
	}
	goroutines, err := dumpGoroutines()
	if err != nil {
		return false
	}
	marked := map[uint64]bool{}
	for i := range goroutines {
		marked[goroutines[i].ID] = goroutines[i].Leaked
	}
	for i := range leaks {
		leaks[i].Proven = marked[leaks[i].ID]
	}
	return true
}
