package probes

import "sync"

// Climbing is how many rises, with no fall between, tell a number that only ever grows.
const Climbing = 3

// maxClimbs bounds the numbers that a [Climb] follows.
const maxClimbs = 1024

// Climb tells numbers that only ever grow from those that rise and fall, by one observation for each Read. The zero Climb
// is ready to use. It may be used concurrently.
type Climb struct {
	mu    sync.Mutex
	round uint64
	by    map[string]*climber
}

type climber struct {
	last, rises int
	round       uint64
}

// Observe notes a number under a key and gives in how many observations it has risen since it last fell, see [Climbing]. A
// number that is new counts as risen.
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
		x = &climber{}
		c.by[key] = x
	}
	switch {
	case n > x.last:
		x.rises++
	case n < x.last:
		x.rises = min(1, n)
	}
	x.last, x.round = n, c.round
	return x.rises
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
