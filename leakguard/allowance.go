package leakguard

import "time"

// What a heap may gain before anybody is paged for it.
//
// Growth is certain from about 6 MiB on, see [memstats.ByteThresholds], but 6 MiB are no reason to wake anybody: a leak of some
// hundred bytes at a time may go on for months, and a table that fills slowly has often stopped by then. A finding is listed until
// its sites have gained 16 MiB, or a sixteenth of a smaller process's limit: what is lost by then can be spared, and the sites are
// known to a fifth (32 samples at the default rate of heap profiles). A process that will reach its limit within a day alarms
// before that, for a person needs the day.
const (
	mostAllowed  = 16 << 20 // bytes
	allowedShare = 16       // of the memory limit, as a divisor
	limitSoon    = 24 * time.Hour
	warmUp       = 4 * time.Minute // what the live heap gains before that is no growth; as the judge has it
)

// allowance gives how many bytes may be gained in a process with this memory limit, 0 for none, before it is worth an alarm.
func allowance(limit uint64) float64 {
	if limit == 0 {
		return mostAllowed
	}
	return min(mostAllowed, float64(limit)/allowedShare)
}
