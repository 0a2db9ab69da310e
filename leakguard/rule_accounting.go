package leakguard

import (
	"fmt"
	"time"

	"github.com/leakguard/leakguard/probes"
)

// ruleAccounting is the exact count of a probe: what was opened and never closed needs no trend.
const ruleAccounting = "accounting"

// accountKey is one leaked resource of one culprit.
type accountKey struct{ probe, resource, scope, culprit string }

// account remembers when a leaked resource was first counted.
type account struct {
	first, last time.Time
	firstCount  float64
	claim       claim
	scans       int     // in a row with this claim
	claimCount  float64 // at the first of them
}

// claim is what a probe says of a count.
type claim uint8

const (
	claimListed claim = iota // worth a line
	claimClimbing
	claimLeaked
)

func claimOf(r *probes.Reading) claim {
	switch {
	case r.Bounded:
		return claimListed
	case r.Leaked:
		return claimLeaked
	case r.Climbing:
		return claimClimbing
	}
	return claimListed
}

// maxAccounts bounds the accounts that are followed.
const maxAccounts = 1024

// climbScans is how many scans in a row a probe must call a count climbing, which is a trend and no proof, for an alarm. In
// these it must have grown once more: a climb that ends when it is seen is a plateau.
const climbScans = 6

// accounts follows the readings that are leaks by themselves.
type accounts struct {
	byKey   map[accountKey]*account
	dropped uint64
}

// judge gives the accounting rule's signals: pending at the first scan, firing from the second on, or later for what is no
// exact account; what ends by itself is listed.
func (a *accounts) judge(readings []probes.Reading, now time.Time, emit func(signal)) {
	for i := range readings {
		r := &readings[i]
		if (!r.Leaked && !r.Climbing && !r.Bounded && !r.Listed) || r.Count <= 0 {
			continue
		}
		key := accountKey{r.Probe, r.Resource, r.Scope, r.Culprit.Function}
		acc := a.byKey[key]
		if acc == nil {
			if len(a.byKey) >= maxAccounts {
				a.dropped++
				continue
			}
			acc = &account{first: now, firstCount: r.Count}
			a.byKey[key] = acc
		}
		acc.note(r, now)
		emit(acc.signal(r, now))
	}
	for key, acc := range a.byKey {
		if !acc.last.Equal(now) {
			delete(a.byKey, key)
		}
	}
}

// note counts a scan, once.
func (acc *account) note(r *probes.Reading, now time.Time) {
	if acc.last.Equal(now) {
		return
	}
	if c := claimOf(r); acc.scans == 0 || c != acc.claim {
		acc.claim, acc.claimCount, acc.scans = c, r.Count, 0
	}
	acc.last = now
	acc.scans++
}

// openNow is how many there are in all at the place of a reading. What has happened so often need not be open.
func openNow(r *probes.Reading) int {
	if r.Total {
		return 0
	}
	return int(max(r.Count, r.InAll))
}

func (acc *account) signal(r *probes.Reading, now time.Time) signal {
	s := signal{
		rule: ruleAccounting, category: r.Probe, resource: r.Resource, settled: int(r.Count - acc.firstCount), owned: openNow(r), bounded: r.Bounded, tier: TierProven, level: levelPending, controller: r.Scope,
		culprit: r.Culprit, count: int64(r.Count), since: acc.first, reason: r.Reason, advice: r.Advice, trap: r.Trap, stack: r.Stack,
	}
	fires := false
	switch claimOf(r) {
	case claimListed:
		s.level, s.tier = levelListed, TierListed
	case claimClimbing:
		s.tier, fires = TierLikely, acc.scans >= climbScans && r.Count > acc.claimCount
	case claimLeaked:
		fires = acc.scans >= 2
	}
	if fires {
		s.level = levelFiring
	}
	if span := now.Sub(acc.first); span > 0 && r.Count > acc.firstCount {
		s.perHour = (r.Count - acc.firstCount) / span.Hours()
	}
	if s.culprit.IsZero() {
		s.culprit.Function, s.pattern = r.Resource, true
	}
	if s.reason == "" {
		s.reason = fmt.Sprintf("%.0f %s", r.Count, r.Resource)
	}
	return s
}
