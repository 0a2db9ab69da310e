package rulefile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
)

// Defaults of [ReloaderOptions].
const (
	DefaultPoll     = 30 * time.Second
	DefaultDebounce = 200 * time.Millisecond
)

// Errors of misuse.
var (
	// ErrOptions occurs when a reloader is made with options that cannot work.
	ErrOptions = errors.New("rulefile: invalid option")
	// ErrRunning occurs when Start is called while it runs already.
	ErrRunning = errors.New("rulefile: the reloader runs already")
)

// ReloaderOptions say which file is watched and how.
type ReloaderOptions struct {
	// Path is the rule file, such as a key of a mounted ConfigMap. It need not exist yet. There is no default.
	Path string
	// Poll is the time between two looks at the file that do not depend on the file system's events. 0 means DefaultPoll; a
	// negative value switches polling off.
	Poll time.Duration
	// Debounce is the time from the first event to the look at the file. 0 means DefaultDebounce, negative at once.
	Debounce time.Duration
	// Slope gives the growth of a group per minute, see Options.Slope. Nil means that the reloader remembers the counts of
	// the groups that it is asked about, as [Slopes] does.
	Slope func(group *stackmatch.Group, in *stackmatch.Context) (perMinute float64, known bool)
	// Audit is told of each new record, in the goroutine that looked at the file; it must not block for long. Nil means
	// nobody is told; Records has the last ones in any case.
	Audit func(Record)
}

// setDefaults fills in what is not set.
func (o *ReloaderOptions) setDefaults() {
	if o.Poll == 0 {
		o.Poll = DefaultPoll
	}
	if o.Debounce == 0 {
		o.Debounce = DefaultDebounce
	}
}

// Reloader keeps the rules of a file in force and follows its changes. A file that is wrong or gone changes nothing: the
// last good rules stay, which are the built-in ones at first. It is a manager.Runnable that runs on every replica, and
// it is what package leakguard takes as its rules. All methods may be called concurrently.
type Reloader struct {
	o        ReloaderOptions
	slopes   Slopes
	counters counters
	running  atomic.Bool
	now      atomic.Pointer[inForce]
	failure  atomic.Pointer[string] // of a condition

	mu sync.Mutex
	// The fields below are guarded by mu.
	records []Record
	seen    string // hash of the content looked at last, or the cause why it could not be read
	problem error  // of the file; nil when its rules are in force
	expired int    // suppressions that the records tell of
}

// inForce is a rule set with the file that it comes from. It is immutable.
type inForce struct {
	file  *File // nil for the built-in rules alone
	rules *stackmatch.RuleSet
	since time.Time
}

// NewReloader makes a reloader with the built-in rules. It starts nothing and does not touch the file: Start does, or
// Reload for those who want to know about a wrong file first.
func NewReloader(o ReloaderOptions) (*Reloader, error) {
	if strings.TrimSpace(o.Path) == "" {
		return nil, fmt.Errorf("%w: ReloaderOptions.Path is empty", ErrOptions)
	}
	o.setDefaults()
	rules, err := stackmatch.NewRuleSet(stackmatch.Builtin()...)
	if err != nil {
		return nil, fmt.Errorf("rulefile: %w", err)
	}
	r := &Reloader{o: o}
	r.now.Store(&inForce{rules: rules})
	return r, nil
}

// Match gives the first rule in force that matches a group, as [stackmatch.RuleSet.Match] does. It does not block on a
// file that is being read.
func (r *Reloader) Match(group *stackmatch.Group, in *stackmatch.Context) (rule *stackmatch.Rule, ok bool) {
	return r.now.Load().rules.Match(group, in)
}

// RuleSet gives the rules in force.
func (r *Reloader) RuleSet() *stackmatch.RuleSet { return r.now.Load().rules }

// File gives the file in force; nil for the built-in rules alone.
func (r *Reloader) File() *File { return r.now.Load().file }

// Suppressed reports whether a suppression of the file in force covers a finding now. Its arguments and results are plain
// texts, so that a package can ask for it by an interface of its own.
func (r *Reloader) Suppressed(rule, category, culprit, controller string) (owner, reason string, ok bool) {
	file := r.File()
	if file == nil {
		return "", "", false
	}
	s, ok := file.Suppressed(Subject{Rule: rule, Category: category, Culprit: culprit, Controller: controller}, time.Now())
	return s.Owner, s.Reason, ok
}

// Stats gives the counters.
func (r *Reloader) Stats() Stats { return r.counters.snapshot() }

// Status says what is in force.
func (r *Reloader) Status() Status {
	r.mu.Lock()
	problem := r.problem
	r.mu.Unlock()
	f := r.now.Load()
	out := Status{Since: f.since, Rules: f.rules.Len()}
	if problem != nil {
		out.Stale, out.Problem = true, problem.Error()
	}
	if e := r.failure.Load(); e != nil {
		out.ConditionError = *e
	}
	if f.file != nil {
		out.SHA256, out.Version, out.Owner = f.file.SHA256, f.file.Version, f.file.Owner
		out.Suppressions, out.Expired = len(f.file.suppressions), len(f.file.Expired(time.Now()))
	}
	return out
}

// Records gives the last 64 audit records, the oldest first. The slice is the caller's.
func (r *Reloader) Records() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.records)
}

// Reload looks at the file now. Its error says why the file is not in force: of the system, wrapped, or the problems of
// the file. Content that was looked at before gives the same error and no new record.
func (r *Reloader) Reload() error { return r.reload("call") }

// reload looks at the file and tells the auditor.
func (r *Reloader) reload(trigger string) error {
	record, err := r.look(trigger)
	if record != nil && r.o.Audit != nil {
		r.o.Audit(*record)
	}
	return err
}

// look looks at the file; a record says what changed, nil that nothing did.
func (r *Reloader) look(trigger string) (*Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counters.checks.Add(1)
	data, err := readFile(r.o.Path)
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	seen := hash
	if err != nil {
		hash, seen = "", cause(err)
	}
	switch {
	case seen == r.seen && r.problem != nil:
		return nil, r.problem
	case seen == r.seen:
		return r.expiredLocked(trigger), nil
	}
	r.seen = seen
	if err == nil {
		err = r.accept(data)
	}
	record := Record{Time: time.Now(), Trigger: trigger, Outcome: OutcomeAccepted, File: r.o.Path, SHA256: hash}
	r.problem = err
	if err != nil {
		r.counters.rejections.Add(1)
		record.Outcome, record.Error = OutcomeRejected, err.Error()
	} else {
		r.counters.reloads.Add(1)
	}
	return r.noteLocked(record), err
}

// cause gives the reason why a file cannot be read without the call of the system that met it: a file that goes between
// two calls fails in the second, and in the first at the next look, for one reason.
func cause(err error) string {
	if system, ok := errors.AsType[*fs.PathError](err); ok {
		err = system.Err
	}
	return err.Error()
}

// accept puts the content of the file in force, if it is right.
func (r *Reloader) accept(data []byte) error {
	file, err := Parse(r.o.Path, data)
	if err != nil {
		return err
	}
	slope := r.o.Slope
	if slope == nil {
		slope = r.slopes.observe
	}
	rules, err := file.RuleSet(Options{Slope: slope, Failed: r.failed})
	if err != nil {
		return err
	}
	r.now.Store(&inForce{file: file, rules: rules, since: time.Now()})
	return nil
}

// failed counts a condition that could not be evaluated.
func (r *Reloader) failed(_ string, err error) {
	r.counters.conditionErrors.Add(1)
	text := err.Error()
	r.failure.Store(&text)
}

// expiredLocked makes a record when a suppression has expired since the last one.
func (r *Reloader) expiredLocked(trigger string) *Record {
	file := r.File()
	if file == nil {
		return nil
	}
	expired := file.Expired(time.Now())
	if len(expired) <= r.expired {
		return nil
	}
	return r.noteLocked(Record{
		Time: time.Now(), Trigger: trigger, Outcome: OutcomeExpired, File: r.o.Path, SHA256: file.SHA256, Error: explainExpired(file.Name, expired),
	})
}

// explainExpired has a line for each expired suppression.
func explainExpired(name string, expired []Suppression) string {
	lines := make([]string, 0, len(expired))
	for i := range expired {
		lines = append(lines, fmt.Sprintf("rulefile: %s:%d: %s", name, expired[i].Line, expired[i].Expiry()))
	}
	return strings.Join(lines, "\n")
}

// noteLocked completes a record and keeps it.
func (r *Reloader) noteLocked(record Record) *Record {
	f := r.now.Load()
	record.Rules = f.rules.Len()
	if f.file != nil {
		record.InForce, record.Version, record.Owner = f.file.SHA256, f.file.Version, f.file.Owner
		record.Overrides, record.Disabled = len(f.file.Overrides()), len(f.file.disabled)
		expired := f.file.Expired(record.Time)
		record.Suppressions, record.Expired = len(f.file.suppressions), len(expired)
		r.expired = len(expired)
		if record.Outcome == OutcomeAccepted && len(expired) > 0 {
			record.Error = explainExpired(f.file.Name, expired)
		}
	}
	if len(r.records) == maxRecords {
		r.records = slices.Delete(r.records, 0, 1)
	}
	r.records = append(r.records, record)
	return &record
}
