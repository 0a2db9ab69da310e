package probes

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"time"
)

// Notice is a setting that makes or hides leaks, said once.
type Notice struct {
	// ID names it: lower case words joined by dashes.
	ID string `json:"id"`
	// Reason says what it does, as measured.
	Reason string `json:"reason"`
	// Advice is what to set instead.
	Advice string `json:"advice"`
}

// Settings is what [Hazards] looks at. The zero value of each field is "unknown", unless it says otherwise.
type Settings struct {
	// GODEBUG is the value of the environment variable.
	GODEBUG string
	// DefaultGODEBUG is the value that the program was built with, from its go.mod and //go:debug lines.
	DefaultGODEBUG string
	// NoAsyncTimers says that the runtime has no asynctimerchan any more, as that of Go 1.27: what a program was built with then
	// does nothing, and with the setting in the environment it does not start.
	NoAsyncTimers bool
	// MemProfileRate is [runtime.MemProfileRate]: 0 is "no heap profile". Negative is unknown.
	MemProfileRate int
	// MemoryLimit is the runtime's soft limit in bytes; [math.MaxInt64] is "none", 0 is unknown.
	MemoryLimit int64
	// CgroupLimit is the memory limit of the container in bytes; 0 is none or unknown.
	CgroupLimit uint64
	// RESTTimeout is the Timeout of the rest.Config that watches are made with; 0 is none.
	RESTTimeout time.Duration
}

// CurrentSettings gives those of the running process. cgroupLimit reads the container's memory limit; nil or an error
// leave it unknown. RESTTimeout is for the caller to add.
func CurrentSettings(cgroupLimit func() (uint64, error)) Settings {
	s := Settings{
		GODEBUG: os.Getenv("GODEBUG"), MemProfileRate: runtime.MemProfileRate,
		MemoryLimit: debug.SetMemoryLimit(-1), // negative reads it
		NoAsyncTimers: !slices.ContainsFunc(metrics.All(), func(d metrics.Description) bool {
			return d.Name == "/godebug/non-default-behavior/asynctimerchan:events"
		}),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, b := range info.Settings {
			if b.Key == "DefaultGODEBUG" {
				s.DefaultGODEBUG = b.Value
			}
		}
	}
	if cgroupLimit != nil {
		if limit, err := cgroupLimit(); err == nil && limit < math.MaxInt64 {
			s.CgroupLimit = limit
		}
	}
	return s
}

// Hazards gives a notice for each setting that makes or hides leaks, ordered by ID.
func Hazards(s Settings) []Notice {
	var out []Notice
	for _, check := range [...]func(*Settings) (Notice, bool){timerHazard, heapProfileHazard, memoryLimitHazard, watchTimeoutHazard} {
		if n, found := check(&s); found {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b Notice) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// godebug gives the value of a key in a list such as "a=1,b=2"; the last one counts.
func godebug(list, key string) string {
	value := ""
	for pair := range strings.SplitSeq(list, ",") {
		if k, v, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && k == key {
			value = v
		}
	}
	return value
}

const timersReason = "timers and tickers that are dropped without Stop are not freed: each time.After in a loop keeps 3 objects of 276 bytes until it fires, " +
	"each time.Tick or Ticker that is dropped 3.2 objects of 306 bytes for ever; without the setting they keep nothing"

// timerHazard is the old implementation of timers, asked for by name, or with all defaults of a Go before 1.23.
func timerHazard(s *Settings) (Notice, bool) {
	value := godebug(s.GODEBUG, "asynctimerchan")
	if value == "" {
		value = godebug(s.DefaultGODEBUG, "asynctimerchan")
	}
	on := (value == "1" || value == "2") && !s.NoAsyncTimers
	if s.oldDefaults() {
		return Notice{
			ID: "old-go-line", Reason: "the program is built with the defaults of a Go before 1.23, of which asynctimerchan=1 is one: " + timersReason,
			Advice: "set the go line of go.mod to 1.23 or later, and take default=go1.22 or older out of its godebug lines and of //go:debug lines",
		}, on
	}
	return Notice{ID: "asynctimerchan", Reason: "GODEBUG asynctimerchan=" + value + " is set: " + timersReason, Advice: "take asynctimerchan out of GODEBUG, //go:debug lines and go.mod"}, on
}

// oldDefaults reports whether asynctimerchan comes with all defaults of a Go before 1.23. The go line of the main module is
// recorded nowhere in a program; what it sets is, in DefaultGODEBUG. Measured: with the line go 1.22, Go 1.26.8 records
// asynctimerchan=1, and beside it httpservecontentkeepheaders=1, which Go 1.23 changed too; with go 1.23 neither. Go 1.27.3
// records the second alone, having removed the first. The same goes for default=go1.22 in a godebug line, which is how a program
// that imports leakguard can have old defaults: its go line must not be below leakguard's.
func (s *Settings) oldDefaults() bool {
	return godebug(s.GODEBUG, "asynctimerchan") == "" && godebug(s.DefaultGODEBUG, "asynctimerchan") == "1" &&
		godebug(s.DefaultGODEBUG, "httpservecontentkeepheaders") == "1"
}

// heapProfileHazard hides what heap growth is made of.
func heapProfileHazard(s *Settings) (Notice, bool) {
	return Notice{
		ID: "no-heap-profile", Reason: "runtime.MemProfileRate is 0: a heap that grows cannot be attributed to lines of code",
		Advice: "leave runtime.MemProfileRate at its default of 512 KiB, which finds leaks of many MB; set it at the start of main to find smaller ones",
	}, s.MemProfileRate == 0
}

// memoryLimitHazard is a garbage collector that does not know where the container ends.
func memoryLimitHazard(s *Settings) (Notice, bool) {
	const mib = 1 << 20
	switch {
	case s.CgroupLimit == 0 || s.MemoryLimit <= 0:
		return Notice{}, false
	case s.MemoryLimit == math.MaxInt64:
		return Notice{
			ID: "no-gomemlimit", Reason: fmt.Sprintf("the container's limit is %d MiB and GOMEMLIMIT is not set: the heap may double between two collections, so that a kill for memory looks like a leak", s.CgroupLimit/mib),
			Advice: fmt.Sprintf("set GOMEMLIMIT to about nine tenths of the limit: GOMEMLIMIT=%dMiB", s.CgroupLimit/mib*9/10),
		}, true
	case uint64(s.MemoryLimit) > s.CgroupLimit:
		return Notice{
			ID: "gomemlimit-above-cgroup", Reason: fmt.Sprintf("GOMEMLIMIT is %d MiB, above the container's limit of %d MiB: the process is killed before the collector tries harder", s.MemoryLimit/mib, s.CgroupLimit/mib),
			Advice: fmt.Sprintf("set GOMEMLIMIT to about nine tenths of the limit: GOMEMLIMIT=%dMiB", s.CgroupLimit/mib*9/10),
		}, true
	}
	return Notice{}, false
}

// watchTimeoutHazard ends every watch.
func watchTimeoutHazard(s *Settings) (Notice, bool) {
	return Notice{
		ID: "rest-timeout", Reason: fmt.Sprintf("rest.Config.Timeout is %v: every watch dies after exactly that time (measured: four of four), and each informer watches or lists again", s.RESTTimeout),
		Advice: "leave Timeout at 0 on a config that watches; give single requests a context with a deadline",
	}, s.RESTTimeout > 0
}
