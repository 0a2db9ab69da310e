package probes

import "sync"

// How many rises tell what; see [Climb.Observe].
const (
	// Repeating is how many rises of a count that never falls tell that it is done again and again.
	Repeating = 3
	// Climbing is how many rises, with no fall and no long rest between, tell a number that keeps growing: what warms up
	// takes fewer. It is a trend and no proof, whatever is counted.
	Climbing = 10
)

// For how many reads a number may rest and still be the one that grows.
const (
	// leastRest is for how long any number may; a number that rises at every read and then does not has arrived.
	leastRest = 2 * Climbing
	// restGaps is how many times the time between its rises a slower one may: what leaks once in five minutes is no plateau
	// after four.
	restGaps = 3
	// mostRest is for how long none may: half an hour at the guard's default interval. What rises less often than that is left
	// to who looks at hours.
	mostRest = 180
	// lookBack is for how many reads, or half of it, a number must not have been as high: one that comes and goes rises ten times
	// in a row now and then, but hardly ever beyond all that it was in hours.
	lookBack = 1440
)

// maxClimbs bounds the numbers that a [Climb] follows.
const maxClimbs = 1024

// Climb tells numbers that keep growing from those that rise and fall, and from those that have grown and stay: a plateau
// is no leak, however high and however it was reached. It takes one observation for each Read. The zero Climb is ready to
// use. It may be used concurrently.
type Climb struct {
	mu    sync.Mutex
	round uint64
	by    map[string]*climber
}

// climber is one number.
type climber struct {
	last  int
	reads int // since the last mark, which there is each lookBack/2 reads
	top   int // the highest since that
	old   int // the highest between that and the mark before
	rises int
	rest  int // in how many observations it has not risen, up to mostRest
	gap   int // how long it rested between its rises of late
	round uint64
}

// Observe notes a number under a key and gives in how many observations it has risen since it last fell or rested for too
// long: twenty observations, or three times as many as it lately rested between two rises, up to 180. A rise is one beyond all
// that the number was in the last 720 to 1440 observations, two to four hours at the guard's default interval. The first
// number of a key is where it starts, and no rise.
func (c *Climb) Observe(key string, n int) (rises int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]*climber{}
	}
	x := c.by[key]
	if x == nil {
		if len(c.by) >= maxClimbs {
			return 0
		}
		x = &climber{last: n, top: n, old: n, rest: mostRest}
		c.by[key] = x
	}
	x.observe(n)
	x.round = c.round
	return x.rises
}

func (x *climber) observe(n int) {
	switch {
	case n > max(x.top, x.old):
		x.rises++
		if x.rest++; x.rest <= mostRest { // else there is no telling
			x.gap = max(x.rest, x.gap-x.gap/4) // one short rest among long ones does not make it fast
		}
		x.rest = 0
	case n < x.last:
		x.rises, x.gap, x.rest = 0, 0, mostRest
	default:
		x.rest = min(x.rest+1, mostRest)
	}
	if x.rest >= min(mostRest, max(leastRest, restGaps*x.gap)) {
		x.rises = 0
	}
	x.last, x.top = n, max(x.top, n)
	if x.reads++; x.reads == lookBack/2 {
		x.top, x.old, x.reads = n, x.top, 0
	}
}

// EndRound forgets the keys that were not observed since the last EndRound.
func (c *Climb) EndRound() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, x := range c.by {
		if x.round != c.round {
			delete(c.by, key)
		}
	}
	c.round++
}
