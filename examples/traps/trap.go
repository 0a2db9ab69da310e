package traps

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LeakyController is the name of the controller whose reconciles run the traps.
const LeakyController = "leaky"

// RunnableController is what leakguard calls the Runnables of traps that do not work in reconciles.
const RunnableController = "runnable manager.RunnableFunc"

// ErrUnknown is wrapped by the error of a name that no trap has.
var ErrUnknown = errors.New("traps: no such trap")

// Expect is what leakguard must say of a trap that runs.
type Expect string

// What leakguard may say.
const (
	// ExpectAlarm is a firing finding.
	ExpectAlarm Expect = "alarm"
	// ExpectListed is a finding in the report that does not fire.
	ExpectListed Expect = "listed"
	// ExpectNotice is a remark that is made once.
	ExpectNotice Expect = "notice"
	// ExpectSilent is nothing at all: it is no leak, though it looks like one.
	ExpectSilent Expect = "silent"
)

// Resource is what a leak takes ever more of.
type Resource string

// What there may be ever more of.
const (
	// Goroutines is a leak that the stacks of goroutines show.
	Goroutines Resource = "goroutines"
	// Heap is a leak of memory that no goroutine waits for.
	Heap Resource = "heap"
	// Counted is a leak of what is on no stack and in no profile, such as descriptors or queued finalizers.
	Counted Resource = "counted"
)

// Trap is one way to leak, or to look like a leak.
type Trap struct {
	// Name is what the example operator's --leak takes.
	Name string `json:"name"`
	// Row is the row of the table of traps; empty for behaviour that is in no row.
	Row string `json:"row,omitempty"`
	// Title says in a few words what happens.
	Title string `json:"title"`
	// Expect is what leakguard must say.
	Expect Expect `json:"expect"`
	// Grows is what there is ever more of.
	Grows Resource `json:"grows,omitempty"`
	// Controller is the controller that the finding must name; empty when the leak is outside of any reconcile, or nothing
	// tells which one it was: memory does not say who allocated it.
	Controller string `json:"controller,omitempty"`
	// ByType says that only the type of the reconciler on the stack tells the controller, since the call has no context: where
	// several controllers have reconcilers of one type, the finding names none.
	ByType bool `json:"by_type,omitempty"`
	// Culprit is the code that the finding must name; zero for a silent trap.
	Culprit Site `json:"culprit,omitzero"`
	// Rules are leakguard's rules that may carry the finding; nil stands for the usual ones of what grows, see Evidence.
	Rules []string `json:"rules,omitempty"`
	// Gap says what leakguard does instead of what is expected; empty when it does what is expected.
	Gap string `json:"gap,omitempty"`
	// Within is how many samples the guard may take until its finding fires; 0 stands for the usual number of what grows, see
	// Deadline.
	Within uint64 `json:"-"`
	// Leaves is how many bytes of heap a rollout leaves behind at least, at an Env.Scale of 0.05; 0 stands for 256 KiB where Grows
	// is Heap.
	Leaves int64 `json:"-"`
	// Also are functions that other findings about the same leak may name: library code whose goroutines it leaves behind.
	Also []string `json:"also,omitempty"`
	// Parts are functions of libraries whose goroutines come with the leak and are part of its one finding; other detectors
	// report each.
	Parts []string `json:"parts,omitempty"`
	// Alone says what it does to the whole process, so that no other trap can leak beside it; empty when it does nothing.
	Alone string `json:"alone,omitempty"`
	// NeedsAPI says that it works with the API server.
	NeedsAPI bool `json:"-"`
	// Configure changes the configuration that the operator's manager is made with; nil for no change.
	Configure func(*rest.Config) `json:"-"`
	// Leak sets up the leaking form, Twin the clean one, which a silent trap does not have. ctx is the life of the operator:
	// what the set-up makes, it releases when ctx ends.
	Leak Start `json:"-"`
	Twin Start `json:"-"`
}

// Evidence gives leakguard's rules of which one carries the finding.
func (t *Trap) Evidence() []string {
	switch {
	case t.Rules != nil || t.Expect == ExpectNotice || t.Expect == ExpectSilent:
		return t.Rules
	case t.Grows == Heap:
		return []string{"heap-growth"}
	case t.Grows == Counted:
		return []string{"accounting"}
	}
	return []string{"orphaned", "object-gone"}
}

// Deadline gives how many samples, from its start, leakguard may take until the finding of a trap that alarms fires: samples
// and not time, so that a busy machine matters little. It follows from what the rules wait for, in intervals of ten seconds that
// are halved while something is pending, with room for three times as many: accounts for the grace and two scans, which is at
// most ten samples; orphans and growth for a minute and ten cohorts of 20 seconds, some 50; the heap for its trend, some 160.
func (t *Trap) Deadline() uint64 {
	switch {
	case t.Within > 0:
		return t.Within
	case t.Grows == Heap:
		return 500
	case t.Grows == Counted && slices.Equal(t.Evidence(), []string{"accounting"}):
		return 40
	}
	return 150
}

// Start sets up a trap.
type Start func(ctx context.Context, env Env) (Work, error)

// Env is what an operator gives a trap to work with.
type Env struct {
	Config *rest.Config
	Client client.Client
	Cache  cache.Cache
	// Controller is the name of the controller whose reconciles run the trap.
	Controller string
	// Scale is leakguard's Options.Scale of the operator that runs the trap, so that work which takes a fixed time takes the
	// scaled time: what is short beside the unshortened intervals is short beside the shortened ones. 0 means 1.
	Scale float64
}

// scaled gives the time that d takes where leakguard's intervals are shortened.
func (e Env) scaled(d time.Duration) time.Duration {
	if e.Scale == 0 {
		return d
	}
	return time.Duration(e.Scale * float64(d))
}

// Object is what a reconcile is about.
type Object struct {
	Namespace, Name string
	// Deleted says that the object is gone.
	Deleted bool
}

// Work is a trap that was set up. Either field may be nil.
type Work struct {
	// Reconcile runs inside reconciles of LeakyController: at each rollout of an object, and once after it was deleted.
	Reconcile func(ctx context.Context, object Object) error
	// Run runs outside of any reconcile, as a Runnable of the manager, until ctx ends.
	Run func(ctx context.Context) error
}

// Site is a place in the code.
type Site struct {
	// Function is the full name, such as "github.com/leakguard/leakguard/examples/traps.leakReconcileGoroutine.func1".
	Function string `json:"function"`
	// File is the path as the compiler wrote it down, the same as in a stack. It is empty for code of a library, which is
	// all that the stacks of some leaks have.
	File string `json:"file,omitempty"`
}

// All gives every trap, in the order in which they are listed. The slice is the caller's.
func All() []Trap {
	return slices.Concat(goroutineLeaks(), clientLeaks(), otherLeaks(), noLeaks())
}

// goroutineLeaks need nothing but Go.
func goroutineLeaks() []Trap {
	return []Trap{
		reconcileGoroutine(),
		chanSend(),
		globalChannel(),
		tickerGoroutine(),
		hungHTTPGet(),
		hungReconcile(),
		selectForever(),
		backgroundGoroutine(),
		heapMap(),
		registeredMap(),
		timerAfterFunc(),
		contextChildren(),
	}
}

// clientLeaks use clients and what they give.
func clientLeaks() []Trap {
	return []Trap{
		idleWatch(),
		unreadWatch(),
		rangedWatch(),
		http1Watch(),
		endedWatch(),
		healedWatch(),
		cancelledWatch(),
		informerStop(),
		informerRestart(),
		cachePerTenant(),
		eventHandlers(),
		blockedHandler(),
		broadcaster(),
		workQueue(),
		registeredBroadcaster(),
		registeredQueue(),
		itemsNeverDone(),
		keysNeverForgotten(),
		fullChannel(),
		tickerStopped(),
		timerStopped(),
		contextDone(),
		httpBody(),
		ownClientBody(),
		ownTransport(),
	}
}

// otherLeaks are the less common ones.
func otherLeaks() []Trap {
	return []Trap{
		finalizerCycle(),
		cleanupHoldsItself(),
		handlerClosures(),
		oldVersions(),
		finalizerGoroutine(),
		blockedFinalizer(),
		customContext(),
		ignoredContext(),
		statusLater(),
		handlerGoroutines(),
		removedHandler(),
		restTimeout(),
		clientPerReconcile(),
		tlsPerReconcile(),
		rearmingTimer(),
		heldTickers(),
		nanKeys(),
		contextChain(),
		rateLimited(),
		longTimeouts(),
		heldTicks(),
		modulePerReconcile(),
		everNewKinds(),
	}
}

// noLeaks only look like leaks.
func noLeaks() []Trap {
	return []Trap{
		droppedTick(),
		timeAfterLoop(),
		droppedTicker(),
		cancelledAtOnce(),
		nestedTimeouts(),
		lateWriter(),
		closureCycle(),
		resurrected(),
		pooledObjects(),
		rawMessages(),
		repeatedTypes(),
		handlerOfItsInformer(),
		workerPerObject(),
		lazyInformer(),
		sharedHTTP(),
		emptiedMap(),
		requestInField(),
	}
}

// Find gives the trap of a name, or an error that wraps ErrUnknown.
func Find(name string) (Trap, error) {
	for _, t := range All() {
		if t.Name == name {
			return t, nil
		}
	}
	return Trap{}, fmt.Errorf("%w: %q", ErrUnknown, name)
}

// siteOf gives the place of a function, or with a suffix such as ".func1" of a function literal in it.
func siteOf(function any, suffix string) Site {
	pc := reflect.ValueOf(function).Pointer()
	f := runtime.FuncForPC(pc)
	file, _ := f.FileLine(pc)
	return Site{Function: strings.TrimSuffix(f.Name(), "-fm") + suffix, File: file}
}

// inReconcile makes a Start of work that needs no set-up.
func inReconcile(work func(context.Context, Object) error) Start {
	return func(context.Context, Env) (Work, error) { return onObjects(work), nil }
}

// onObjects does work in reconciles of objects that are there.
func onObjects(work func(context.Context, Object) error) Work {
	return Work{Reconcile: func(ctx context.Context, object Object) error {
		if object.Deleted {
			return nil
		}
		return work(ctx, object)
	}}
}
