package leakguard

import (
	"errors"
	"time"
)

// Breakers are the breakers for the tests of package leakguard_test, where the make-believe process is.
type Breakers struct{ *breakers }

// NewBreakers gives breakers at the default times.
func NewBreakers(b Breaker) Breakers {
	o := Options{}
	o.setDefaults()
	return Breakers{newBreakers(&b, newTiming(&o))}
}

// Runs reports whether a reconcile of a controller would run.
func (b Breakers) Runs(controller string, now time.Time) bool { return b.wait(controller, now) == 0 }

// Step moves on by one tick of a detector and says what became of which controllers: "app open".
func (b Breakers) Step(now time.Time, findings []Finding, d *Detector) (changes []string) {
	for _, c := range b.step(leaks{now, findings, d.lasting}) {
		changes = append(changes, c.controller+" "+c.state)
	}
	return changes
}

// SetCgroupLimit makes the process believe that its container has so many bytes of memory; 0 is no container.
func SetCgroupLimit(limit uint64) {
	cgroupLimit = func() (uint64, error) {
		if limit == 0 {
			return 0, errors.New("no cgroup")
		}
		return limit, nil
	}
}
