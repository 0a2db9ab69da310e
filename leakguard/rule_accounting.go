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
	scans       int
	firstCount  float64
}

// maxAccounts bounds the accounts that are followed.
const maxAccounts = 1024

// climbScans is how many scans in a row a probe must call a count climbing, which is a trend and no proof, for an alarm.
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
		if !acc.last.Equal(now) {
			acc.last = now
			acc.scans++
		}
		emit(acc.signal(r, now))
	}
	for key, acc := range a.byKey {
		if !acc.last.Equal(now) {
			delete(a.byKey, key)
		}
	}
}

func (acc *account) signal(r *probes.Reading, now time.Time) signal {
	s := signal{
		rule: ruleAccounting, category: r.Probe, resource: r.Resource, settled: int(r.Count - acc.firstCount), bounded: r.Bounded, tier: TierProven, level: levelPending, controller: r.Scope,
		culprit: r.Culprit, count: int64(r.Count), since: acc.first, reason: r.Reason, advice: r.Advice, trap: r.Trap, stack: r.Stack,
	}
	need := 2
	if !r.Leaked {
		need, s.tier = climbScans, TierLikely
	}
	switch {
	case r.Bounded, !r.Leaked && !r.Climbing:
		s.level, s.tier = levelListed, TierListed
	case acc.scans >= need:
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
