// Package memstats reads what the Go runtime and the kernel know about a process's memory, keeps a bounded history of
// it, and says from the numbers alone whether something grows for ever, since when and how fast.
//
// # Usage
//
//	reader := memstats.NewReader(memstats.Options{Limit: limit})
//	history := memstats.NewSeries(memstats.Full)
//	var sample memstats.Sample
//	judge := memstats.NewJudge(memstats.Thresholds{})
//	for range ticker.C {
//		reader.Read(&sample)
//		history.Add(sample.Time, float64(sample.HeapLiveBytes))
//		verdict := judge.Judge(history, memstats.Covariate{Name: "live objects", Series: objects})
//	}
//
// A [Series] holds any number: a goroutine count per stack, a probe's reading, a metric. A [Covariate] is a number
// that is allowed to drive it: growth that follows live objects is explained, growth per object is not.
//
// # Cost
//
// [Reader.Read] takes one to two microseconds, allocates nothing and never stops the world. A series is 1.5 KiB in
// the [Compact] layout and 8.3 KiB in [Full]; see [Series.Bytes].
//
// # Concurrency
//
// Nothing here starts a goroutine. Types are not safe for concurrent use unless their comment says so; functions are.
//
// # Limits
//
// A rise whose driver nobody hands over as a covariate cannot be told from a leak while it lasts.
package memstats
