package main

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime/pprof"
	"slices"

	"github.com/google/pprof/profile"
	"go.uber.org/goleak"
)

// peersResult is what other detectors say of a trap on the same run: how many goroutines with the trap's culprit, or with
// library code that it leaves behind, on their stacks.
type peersResult struct {
	// Goleak are those that goleak reports as left behind since the load began.
	Goleak int `json:"goleak"`
	// GoroutineLeak are those in the runtime's goroutineleak profile; absent where the runtime has none.
	GoroutineLeak *int `json:"goroutineleak,omitempty"`
}

// proved says in words what is in the goroutineleak profile.
func (p *peersResult) proved() string {
	if p.GoroutineLeak == nil {
		return "is not there"
	}
	return fmt.Sprintf("has %d", *p.GoroutineLeak)
}

// askPeers asks the other detectors about each trap. before is what goleak must not count.
func (o *operator) askPeers(before goleak.Option) {
	left := goleakStacks(before)
	proved, has := provedLeaks()
	for _, l := range o.leaks {
		l.peers = &peersResult{Goleak: l.leftBy(left)}
		if has {
			l.peers.GoroutineLeak = new(l.leftBy(proved))
		}
	}
}

// group is a stack and how many goroutines have it.
type group struct {
	functions []string
	count     int
}

// leftBy counts the goroutines that the trap leaves behind.
func (l *leak) leftBy(groups []group) int {
	n := 0
	for _, g := range groups {
		if slices.ContainsFunc(g.functions, l.leaves) {
			n += g.count
		}
	}
	return n
}

// leaves reports whether a goroutine in a function is one that the trap leaves behind.
func (l *leak) leaves(function string) bool {
	function = generic(function)
	return function == l.Culprit.Function || slices.Contains(l.Also, function) || slices.Contains(l.Parts, function)
}

var (
	goleakGoroutine = regexp.MustCompile(`(?m)^.*Goroutine \d+ in state .*$`)
	goleakFunction  = regexp.MustCompile(`(?m)^(?:created by )?([^\s\t].*?)(?:\([^()]*\)| in goroutine \d+)$`)
)

// goleakStacks gives the functions on the stack of each goroutine that goleak reports, which it does as a text.
func goleakStacks(before goleak.Option) []group {
	err := goleak.Find(before)
	if err == nil {
		return nil
	}
	var stacks []group
	for _, text := range goleakGoroutine.Split(err.Error(), -1)[1:] {
		var functions []string
		for _, match := range goleakFunction.FindAllStringSubmatch(text, -1) {
			functions = append(functions, match[1])
		}
		stacks = append(stacks, group{functions, 1})
	}
	return stacks
}

// provedLeaks collects garbage and reads the goroutineleak profile, which Go has from 1.27 on.
func provedLeaks() (leaks []group, has bool) {
	var buffer bytes.Buffer
	p := pprof.Lookup("goroutineleak")
	if p == nil || p.WriteTo(&buffer, 0) != nil {
		return nil, false
	}
	parsed, err := profile.Parse(&buffer)
	if err != nil {
		return nil, false
	}
	for _, sample := range parsed.Sample {
		leak := group{count: int(sample.Value[0])}
		for _, location := range sample.Location {
			for _, line := range location.Line {
				leak.functions = append(leak.functions, line.Function.Name)
			}
		}
		leaks = append(leaks, leak)
	}
	return leaks, true
}
