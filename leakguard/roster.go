package leakguard

import "time"

// maxRoster bounds the goroutines of one place that are followed by their ids: some 48 KiB.
const maxRoster = 1024

// roster follows the goroutines of a growing place by their ids, from one full dump to the next. The cheap profile only has
// their number, and takes the last one born for the one that ended. Where as many end as begin, that sees survivors that are
// none: of a hundred goroutines that each live for five minutes the number now and then climbs as that of a leak does.
type roster struct {
	first map[uint64]time.Time // from when on each goroutine is known to have lived, by id
	asOf  time.Time            // of the dump that the ids are of; zero for none
	since time.Time            // of the first dump; zero for none
	last  time.Time            // of the latest one
	ended endings              // those that were survivors, by their ids, and ended
	wrong int                  // how often dumps showed that the survivors are none
	next  time.Time            // no dump is asked for before
	full  bool                 // some found no room
	blind bool                 // the ids say nothing: goroutines of other places have the same root, or the dump is cut off
}

// see takes in the goroutines of one dump, and gives how many of those of the dump before are still there; the time of that
// one is zero when this says nothing.
func (r *roster) see(x *dumpIndex, p *growthPlace, now time.Time, t timing) (stayed int, before time.Time) {
	if r.last = now; r.since.IsZero() {
		r.since = now
	}
	ids, old := x.byRoot[p.root], r.first
	if r.blind = x.dump.Truncated || !fits(len(ids), p.count); r.blind {
		return 0, time.Time{}
	}
	asOf := r.asOf
	if r.asOf = now; !r.full {
		before = asOf
	}
	r.first, r.full = make(map[uint64]time.Time, min(len(ids), maxRoster)), false
	for _, i := range ids {
		g := &x.dump.Goroutines[i]
		first, known := old[g.ID]
		switch {
		case known:
			stayed++
			delete(old, g.ID)
		case len(r.first)+len(old) >= maxRoster: // those that were followed keep their room
			r.full = true
			continue
		default:
			first = now.Add(-g.Wait)
		}
		r.first[g.ID] = first
	}
	gone := 0
	for _, first := range old {
		if asOf.Sub(first) >= t.aged {
			gone++
		}
	}
	if gone > 0 {
		r.ended.addCount(now, t.aged, gone, t)
	}
	return stayed, before
}

// due reports whether the next dump should be taken: after a minute, then less and less often, but each five minutes at least.
func (r *roster) due(now time.Time, t timing) bool {
	if r.last.IsZero() {
		return !now.Before(r.next)
	}
	return now.Sub(r.last) >= min(max(t.recheck, r.last.Sub(r.since)/4), t.resolve)
}

// compared reports whether two dumps have said what ids can say.
func (r *roster) compared() bool { return r.blind || r.last.After(r.since) }

// rest forgets the goroutines of a place that has not grown for long. A backlog that explains the growth for a while is none.
func (r *roster) rest(now time.Time, t timing) {
	if now.Sub(r.last) >= t.memory {
		r.forget()
	}
}

// forget begins anew.
func (r *roster) forget() {
	r.first, r.full, r.blind = nil, false, false
	r.asOf, r.since, r.last = time.Time{}, time.Time{}, time.Time{}
}

// maxWrong bounds how often the time until another dump doubles: half an hour at the most.
const maxWrong = 4

// refute notes that the goroutines are not those they were taken for: other dumps are asked for later and later.
func (r *roster) refute(now time.Time, t timing) {
	r.forget()
	r.next = now.Add(t.fresh << min(r.wrong, maxWrong))
	r.wrong++
}
