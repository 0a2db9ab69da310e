package leaktest

import (
	"errors"
	"fmt"
	"time"
)

// DefaultSettle is how long a check waits at most for goroutines that are still ending. It ends as soon as all is quiet,
// so only a leak costs that much.
const DefaultSettle = 5 * time.Second

// ErrOption is wrapped by the error of each option that cannot be used.
var ErrOption = errors.New("leaktest: bad option")

// Option changes a check.
type Option interface{ apply(c *config) error }

// TB is the part of [testing.TB] that the assertions need. Ginkgo's GinkgoT() has it too.
type TB interface {
	// Helper marks the caller as one whose lines say nothing about a failure.
	Helper()
	// Name is the full name of the test, with its parents.
	Name() string
	// Errorf fails the test and lets it go on.
	Errorf(format string, args ...any)
	// Cleanup calls a function when the test and all its subtests are over.
	Cleanup(f func())
}

type optionFunc func(c *config) error

func (f optionFunc) apply(c *config) error { return f(c) }

// config is the sum of the options of a check.
type config struct {
	settle   time.Duration
	ignores  []*suppression
	current  map[uint64]bool // ids of goroutines that do not count
	pack     bool
	proof    bool
	cleanup  func(exitCode int)
	settling []func()
	heap     heapConfig
	allowed  map[string]float64
}

func newConfig(opts []Option) (*config, error) {
	c := &config{settle: DefaultSettle, pack: true, proof: true, heap: defaultHeap()}
	var errs []error
	for i, o := range opts {
		if o == nil {
			errs = append(errs, fmt.Errorf("%w: option %d is nil", ErrOption, i))
			continue
		}
		if err := o.apply(c); err != nil {
			errs = append(errs, err)
		}
	}
	return c, errors.Join(errs...)
}

// Settle sets how long a check waits for goroutines that are still ending; the default is [DefaultSettle]. With 0 it
// looks once. Less than 0 is an error.
func Settle(d time.Duration) Option {
	return optionFunc(func(c *config) error {
		if d < 0 {
			return fmt.Errorf("%w: Settle(%s) is negative", ErrOption, d)
		}
		c.settle = d
		return nil
	})
}

// WhileSettling has a function called each time before a check looks again, to hurry along what ends late: closing the idle
// connections of a client, for example. It must return soon, and may be called many times.
func WhileSettling(f func()) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return fmt.Errorf("%w: WhileSettling(nil)", ErrOption)
		}
		c.settling = append(c.settling, f)
		return nil
	})
}

// WithoutPack switches the entries of [Pack] off but those of the runtime and of package testing.
func WithoutPack() Option {
	return optionFunc(func(c *config) error { c.pack = false; return nil })
}

// WithoutProof does not ask the runtime's leak profile about the goroutines that are left. A program needs it that wakes
// goroutines through weak pointers: the runtime ends a process in which one that it has marked as leaked is woken.
func WithoutProof() Option {
	return optionFunc(func(c *config) error { c.proof = false; return nil })
}

// Cleanup has a function called at the end of the check. [VerifyTestMain] hands it the exit code and leaves the exit to it;
// the others hand it 0. It is goleak's option of this name.
func Cleanup(f func(exitCode int)) Option {
	return optionFunc(func(c *config) error { c.cleanup = f; return nil })
}

// IgnoreCurrent ignores the goroutines that are alive when IgnoreCurrent is called, not when the check begins. It is goleak's
// option of this name. It takes a dump, which stops the world.
func IgnoreCurrent() Option {
	ids := map[uint64]bool{}
	all, err := dumpGoroutines()
	for i := range all {
		ids[all[i].ID] = true
	}
	return optionFunc(func(c *config) error {
		if c.current == nil {
			c.current = map[uint64]bool{}
		}
		for id := range ids {
			c.current[id] = true
		}
		return err
	})
}
