package probes

import (
	"context"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of [LedgerOptions].
const (
	// DefaultGrace is how old an entry must be to count as overdue.
	DefaultGrace = 20 * time.Second
	// DefaultMaxEntries bounds the open entries of a ledger.
	DefaultMaxEntries = 16_384
)

// Kind is what a [Ledger] has entries of. It is declared once, as a package-level value.
type Kind struct {
	// Resource is the plural that readings count: "response bodies". Required.
	Resource string
	// Closed says how one is closed: "closed", "stopped", "shut down".
	Closed string
	// Trap is the row of the table of traps; may be empty.
	Trap string
	// Advice is what to do about one that was left open.
	Advice string
	// Works is set when an entry that shows activity, see [Entry.Touch], is in use and not overdue.
	Works bool
}

// LedgerOptions are the parts of a [Ledger] that have defaults.
type LedgerOptions struct {
	// Scopes tells which spans have ended. Nil: nothing is known of spans, and nothing is called leaked for outliving one.
	Scopes *Scopes
	// Objects tells which objects live. Nil: entries are not compared with objects.
	Objects *ObjectIndex
	// MainModule is the path of the module to look for culprits in; empty: that of the running program.
	MainModule string
	// Grace is how old an entry must be to be overdue; 0: [DefaultGrace], negative: none.
	Grace time.Duration
	// MaxEntries bounds the open entries; more are counted and not kept. 0: [DefaultMaxEntries].
	MaxEntries int
}

// Ledger keeps account of things that must be closed by whoever opened them: response bodies, watches, queues. It is a
// [Probe].
//
// An entry is overdue when the span that it was opened in has ended and it is older than the grace and three times the
// longest life that one of the same site ever had beyond its span. Overdue entries of one site are leaked, exactly, when
//
//   - several are for the same target, such as one URL, and not for different objects: one would do;
//   - several are of one object: its later reconciles opened another while the first was open;
//   - their objects, at least three, are gone;
//   - or there are more than live objects, and at least three.
//
// When the objects are unknown, ten or more climb for as long as they become more: see [Climb].
//
// An entry that ends by itself, such as a watch with a timeout, is overdue the grace after that at the earliest. Until then
// it is bounded.
//
// So what is opened once for the process, or once for each live object, is never called leaked.
//
// All methods may be called concurrently.
type Ledger struct {
	name     string
	current  atomic.Pointer[LedgerOptions]
	start    time.Time
	describe func(target string) string // says what a target is without naming objects; nil for nothing
	dropped  atomic.Uint64

	climb Climb // of overdue entries by group

	mu   sync.Mutex
	head *Entry // of all open entries, newest first
	open int
	life map[placeKey]pastLives
}

// NewLedger gives an empty ledger. name is its name as a probe.
func NewLedger(name string, options LedgerOptions) *Ledger {
	l := &Ledger{name: name, start: time.Now(), life: map[placeKey]pastLives{}}
	l.SetOptions(options)
	return l
}

// SetOptions judges all entries, also those that are open, by other options from now on. It is for a ledger that is older than
// what it is compared with.
func (l *Ledger) SetOptions(options LedgerOptions) {
	if options.Grace == 0 {
		options.Grace = DefaultGrace
	}
	if options.MaxEntries == 0 {
		options.MaxEntries = DefaultMaxEntries
	}
	if options.MainModule == "" {
		options.MainModule = mainModule()
	}
	l.current.Store(&options)
}

// Options are those that are in force, with the defaults filled in. They must not be changed.
func (l *Ledger) Options() *LedgerOptions { return l.current.Load() }

// pastLives is what is remembered of the entries of one place that were closed after their span.
type pastLives struct {
	longest time.Duration
	n       int
}

// Name implements [Probe].
func (l *Ledger) Name() string { return l.name }

// Dropped is how many entries found no room.
func (l *Ledger) Dropped() uint64 { return l.dropped.Load() }

// Entry is one open thing in a ledger. A nil Entry is one that found no room; its methods do nothing.
type Entry struct {
	ledger     *Ledger
	kind       *Kind
	target     string
	site       Site
	scope, id  string // the labels of its context, empty for none
	born       time.Duration
	ends       time.Duration // how long after born it ends by itself; 0 for never
	lastSeq    uint64        // the youngest span at that time
	touched    atomic.Uint64
	seen       atomic.Uint64 // touched as of the last Read
	late       atomic.Bool   // its span was seen to have ended
	prev, next *Entry        // guarded by the ledger's mutex, as is closed
	closed     bool
}

// Open makes an entry. ctx tells the span it belongs to, if any; target is what it is for, in words that are compared
// but never shown ("" for nothing), and site the calls that opened it.
func (l *Ledger) Open(ctx context.Context, kind *Kind, target string, site Site) *Entry {
	return l.openFor(ctx, kind, target, site, 0)
}

// openFor is Open for an entry that ends by itself after so long; 0 for never.
func (l *Ledger) openFor(ctx context.Context, kind *Kind, target string, site Site, ends time.Duration) *Entry {
	e := &Entry{ledger: l, kind: kind, target: target, site: site, born: time.Since(l.start), ends: ends}
	pprof.ForLabels(ctx, func(key, value string) bool {
		switch key {
		case LabelController:
			e.scope = value
		case LabelReconcile:
			e.id = value
		}
		return true
	})
	if l.Options().Scopes != nil {
		e.lastSeq = l.Options().Scopes.lastSeq()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.Options().MaxEntries {
		l.dropped.Add(1)
		return nil
	}
	l.open++
	e.next = l.head
	if l.head != nil {
		l.head.prev = e
	}
	l.head = e
	return e
}

// Touch notes that the entry is in use. It costs an atomic addition.
func (e *Entry) Touch() {
	if e != nil {
		e.touched.Add(1)
	}
}

// Close takes the entry out of its ledger; a second time it does nothing.
func (e *Entry) Close() {
	if e == nil {
		return
	}
	l := e.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.closed {
		return
	}
	e.closed = true
	l.open--
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	if e.late.Load() {
		l.outlivedLocked(e)
	}
}

// maxPlaces bounds the sites whose past lives are remembered.
const maxPlaces = 1024

// outlivedLocked remembers an entry that was closed after its span.
func (l *Ledger) outlivedLocked(e *Entry) {
	key := e.place()
	have, known := l.life[key]
	if !known && len(l.life) >= maxPlaces {
		return
	}
	have.longest = max(have.longest, time.Since(l.start)-e.born)
	have.n++
	l.life[key] = have
}

// placeKey is where entries come from.
type placeKey struct {
	kind  *Kind
	site  uint64
	other string // tells entries without a site apart
}

func (e *Entry) place() placeKey {
	if e.site.IsZero() {
		return placeKey{kind: e.kind, other: e.scope + " " + e.target}
	}
	return placeKey{kind: e.kind, site: e.site.ID()}
}
