package leakguard

import "time"

// The spans and counts of the rules, as measured on 33 leaking and 27 benign programs.
const (
	// enough is how many survivors in as many cohorts make an alarm (N of the joined rules).
	enough = 10
	// enoughRunning is the same for goroutines that do run now and then, which have no wait age to speak for them.
	enoughRunning = 2 * enough
	// pendingSpans is how many ended reconciles, in as many cohorts, make a pending finding.
	pendingSpans = 3
	// maxEnded is the share of aged goroutines of one place that may have ended while the others are still called leaked.
	maxEnded = 0.05
	// provenGone is how many gone objects prove a leak of per-object workers.
	provenGone = 3
	// outlives is how many times the longest life of one that ended a goroutine of a gone object must have lived.
	outlives = 3
	// waitedShare is the share of the age we have seen that the runtime must report as waited.
	waitedShare = 0.4
	// pile is how many goroutines of one place need no dump to alarm.
	pile = 1000
)

// timing holds every span of time that the detector works with, already multiplied by Options.Scale.
type timing struct {
	scale                              float64
	interval, minInterval, maxInterval time.Duration
	grace                              time.Duration // an orphan counts from this age on
	pendingCohort, cohort              time.Duration // births within one cohort count as one
	aged                               time.Duration // from this age on a goroutine is a survivor
	gone                               time.Duration // an object counts as gone this long after it went
	goneProven                         time.Duration // the least age of a proven worker of a gone object
	fresh                              time.Duration // a place that bore none for this long has stopped growing
	memory                             time.Duration // how long endings are held against a place
	quiet                              time.Duration // a pending finding without evidence for this long is dropped
	resolve                            time.Duration // a firing finding without evidence for this long is resolved
	keep                               time.Duration // a resolved finding stays in the report for this long
	hung                               time.Duration // a span in flight for this long is listed
	recheck                            time.Duration // how long the verdict of a dump holds
	heapEvery                          time.Duration // between two heap profiles
	proofEvery                         time.Duration // between two leak profiles
	dumpRetry                          time.Duration // after a dump that stopped the world for too long
	warmUp, limitSoon                  time.Duration // see allowance.go
	creation                           time.Duration // over which goroutines created are counted
}

// newTiming scales the defaults. The minute of "at least one completed tick" is in health.go.
func newTiming(o *Options) timing {
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * o.Scale) }
	return timing{
		scale:    o.Scale,
		interval: scaled(o.Interval), minInterval: scaled(DefaultMinInterval), maxInterval: scaled(DefaultMaxInterval),
		grace:         scaled(o.Grace),
		pendingCohort: scaled(5 * time.Second), cohort: scaled(20 * time.Second),
		aged: scaled(time.Minute), gone: scaled(time.Minute), goneProven: scaled(5 * time.Minute),
		fresh: scaled(2 * time.Minute), memory: scaled(30 * time.Minute),
		quiet: scaled(time.Minute), resolve: scaled(5 * time.Minute), keep: scaled(time.Hour), recheck: scaled(time.Minute), hung: scaled(10 * time.Minute),
		heapEvery: scaled(5 * time.Minute), proofEvery: scaled(10 * time.Minute), dumpRetry: scaled(2 * time.Minute),
		warmUp: scaled(warmUp), limitSoon: scaled(limitSoon), creation: scaled(time.Minute),
	}
}
