package leakguard

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// ErrOptions is wrapped by the error of an option that cannot be used; the message names the field.
var ErrOptions = errors.New("leakguard: bad option")

// Defaults of [Options].
const (
	DefaultInterval    = 10 * time.Second
	DefaultMinInterval = 5 * time.Second
	DefaultMaxInterval = 5 * time.Minute
	DefaultGrace       = 20 * time.Second
	DefaultCPU         = 0.01
	DefaultPause       = 10 * time.Millisecond
)

// Options configures a Guard. The zero value works; it is copied, so a change after New has no effect.
type Options struct {
	// Interval is the time between two samples. 0 means DefaultInterval. It must lie between DefaultMinInterval and
	// DefaultMaxInterval; the guard stretches it up to DefaultMaxInterval to stay within Budget.
	Interval time.Duration
	// Grace is how long after its reconcile a goroutine may live before it counts as orphaned. 0 means DefaultGrace.
	Grace time.Duration
	// Scale multiplies every duration that the guard works with (the interval, the grace, the spans of the rules), so
	// that tests and demos see in seconds what takes minutes. 0 means 1; it must lie in (0, 1]. In production leave it
	// alone: the rules were measured at 1.
	Scale float64
	// Budget bounds what the guard itself may cost.
	Budget Budget
	// Registerer is where Start registers the guard's metrics, and unregisters them on return. Nil means controller-runtime's
	// registry, which the manager's metrics endpoint serves.
	Registerer prometheus.Registerer
	// Logger gets one line when a finding fires and one when it resolves. The zero Logger means controller-runtime's.
	Logger logr.Logger
	// MainModule is the path of the operator's own module, whose frames are blamed first. Empty means what the binary's
	// build information says.
	MainModule string
	// Probes are asked once a sample; each Leaked reading is a finding. [AddProbe] adds further ones at any time.
	Probes []probes.Probe
	// Rules names known patterns in a group of goroutines and gives their title and advice. Nil means no names.
	Rules Rules
	// UnreadyOn makes Check fail while a finding of this tier, or a more certain one, is firing, and with it the check
	// "leakguard" of the manager's readyz. Its healthz only says whether the guard samples: a Pod that leaks is unready then and is
	// not restarted. Empty means never: a leak is seldom a reason to take no more work.
	UnreadyOn Tier
	// Proof asks the runtime's goroutine leak profile now and then, where the runtime has it (Go 1.27, or Go 1.26 built with
	// GOEXPERIMENT=goroutineleakprofile). What it says is certain, and costs one garbage collection. It is off by default: when a
	// program wakes a goroutine that the profile has marked, through a weak pointer, the runtime ends the process.
	Proof bool
	// CaptureDir is a directory that gets the heap profile when the live heap grows, and the text of a dump that decided a
	// finding: at most 8 files, written atomically, the oldest go. Empty means none.
	CaptureDir string
	// LowCardinality gives all reconciles of a controller within a second or so one set of labels, for operators whose CPU
	// profiles are collected: each label set is a series there. Orphans are then judged by their growth, as it is not known
	// which object they belong to.
	LowCardinality bool
	// CancelOnReturn cancels the context of a reconcile when it returns, so that goroutines that honour it cannot outlive
	// it. It changes what the operator does: work that is meant to go on behind the reconcile with its context ends.
	CancelOnReturn bool
	// Breaker pauses a controller that leaks beyond an allowance, but never all of them. Nil means never.
	Breaker *Breaker
	// DebugOpen lets the debug page show stacks and names to everybody, also where the metrics server asks nobody who
	// they are. Without it such a server gives them to loopback callers only.
	DebugOpen bool
}

// Budget bounds the guard's own cost.
type Budget struct {
	// CPU is the share of one core that sampling may use on average. 0 means DefaultCPU; negative means no bound. With a
	// Scale below 1, which samples more often, it is divided by Scale.
	CPU float64
	// Pause is how long a single dump may stop the world, as far as the ones before tell. 0 means DefaultPause; negative
	// means no bound. After one that took longer, another is tried where one should fit: after two minutes, then four, and so
	// on up to half an hour.
	Pause time.Duration
}

// setDefaults fills in what is zero and applies Scale.
func (o *Options) setDefaults() {
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.Scale == 0 {
		o.Scale = 1
	}
	if o.Budget.CPU == 0 {
		o.Budget.CPU = DefaultCPU
	}
	if o.Budget.Pause == 0 {
		o.Budget.Pause = DefaultPause
	}
	if o.MainModule == "" {
		o.MainModule = frame.MainModule()
	}
}

// validate checks options whose defaults are set.
func (o *Options) validate() error {
	switch {
	case o.Interval < DefaultMinInterval || o.Interval > DefaultMaxInterval:
		return fmt.Errorf("%w: Interval %v is not between %v and %v", ErrOptions, o.Interval, DefaultMinInterval, DefaultMaxInterval)
	case o.Grace < 0:
		return fmt.Errorf("%w: Grace %v is negative", ErrOptions, o.Grace)
	case !(o.Scale > 0 && o.Scale <= 1): // also catches NaN
		return fmt.Errorf("%w: Scale %v is not in (0, 1]", ErrOptions, o.Scale)
	case !(o.Budget.CPU <= 1):
		return fmt.Errorf("%w: Budget.CPU %v is a share of one core and cannot be above 1", ErrOptions, o.Budget.CPU)
	}
	if err := o.Breaker.validate(); err != nil {
		return err
	}
	if o.UnreadyOn != "" && !o.UnreadyOn.alarms() {
		return fmt.Errorf("%w: UnreadyOn %q is not %q or %q", ErrOptions, o.UnreadyOn, TierProven, TierLikely)
	}
	return nil
}
