package leakguard

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/probes/clientgo"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// The functions of libraries whose goroutines come with something else that is leaked: the watch, the body or the informer
// that they serve. Beside a finding about that they are no finding of their own. They are matched by prefix.
var (
	receiveRoots = [...]string{"k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive"}
	streamRoots  = [...]string{
		"golang.org/x/net/http2.(*clientStream).doRequest",
		"net/http.(*http2clientStream).doRequest",
		"net/http/internal/http2.(*clientStream).doRequest",
	}
	connRoots = [...]string{
		readLoop, writeLoop,
		"golang.org/x/net/http2.(*ClientConn).readLoop",
		"net/http.(*http2ClientConn).readLoop",
		"net/http/internal/http2.(*ClientConn).readLoop",
	}
	listenerRoots    = [...]string{"k8s.io/client-go/tools/cache.(*processorListener)"}
	queueRoots       = [...]string{"k8s.io/client-go/util/workqueue."}
	broadcasterRoots = [...]string{
		"k8s.io/apimachinery/pkg/watch.(*Broadcaster).loop",
		"k8s.io/client-go/tools/record.(*eventBroadcasterImpl)",
		"k8s.io/client-go/tools/events.(*eventBroadcasterImpl)",
	}
	otherRoots = [...]string{
		"context.(*cancelCtx).propagateCancel.func2",
		"k8s.io/client-go/tools/record.(*eventBroadcasterImpl).StartEventWatcher",
		"sigs.k8s.io/controller-runtime/pkg/cache.(*multiNamespaceCache).Start",
		"sigs.k8s.io/controller-runtime/pkg/cache/internal.(*Informers)",
	}
)

// The two halves of a connection of HTTP/1.1.
const (
	readLoop  = "net/http.(*persistConn).readLoop"
	writeLoop = "net/http.(*persistConn).writeLoop"
)

// accountsOf gives the probe, and the starts of its resources, that a part's goroutines serve; "" for none.
func accountsOf(root string) (probe string, resources []string) {
	const watches, bodies, transports, cached = "watch", "response bodies", "HTTP transports", "client transports"
	switch {
	case hasAnyPrefix(root, receiveRoots[:]):
		return probes.TransportName, []string{watches}
	case hasAnyPrefix(root, streamRoots[:]):
		return probes.TransportName, []string{watches, bodies}
	case hasAnyPrefix(root, connRoots[:]):
		return probes.TransportName, []string{watches, bodies, transports, cached} // of the last two the larger count speaks
	case hasAnyPrefix(root, listenerRoots[:]):
		return clientgo.InformersName, []string{"event handlers"}
	case hasAnyPrefix(root, queueRoots[:]):
		return clientgo.ResourcesName, []string{"workqueues"}
	case hasAnyPrefix(root, broadcasterRoots[:]):
		return clientgo.ResourcesName, []string{"event broadcasters"}
	}
	return "", nil
}

// isCounted reports whether a signal is about goroutines of what [Resources] counts when it was passed through it; else the signal
// is the finding.
func (s *signal) isCounted() bool {
	probe, _ := accountsOf(s.root)
	return s.pattern && probe == clientgo.ResourcesName
}

// descriptors is what the resources start with of which each connection takes one.
const descriptors = "open files"

// isPart reports whether a signal comes with something else: it is about goroutines of a library, or about descriptors. With a
// culprit of the operator's own, such as a handler that blocks, it is a leak of its own.
func (s *signal) isPart() bool {
	return (s.root != "" && s.pattern && isPart(s.root)) || strings.HasPrefix(s.resource, descriptors)
}

// isPart reports whether a root function's goroutines come with something else.
func isPart(root string) bool {
	probe, _ := accountsOf(root)
	return (probe != "" && probe != clientgo.ResourcesName) || hasAnyPrefix(root, otherRoots[:])
}

// fits reports whether so many owners explain so many parts. A few are always under way.
func fits(parts, owners int) bool { return parts <= owners+owners/4+pendingSpans }

// joining makes one finding of the signals about one leak. It remembers what it joined, for an owner may be without a
// signal at a tick or two, as when a probe is late.
type joining struct {
	joined map[string]time.Time // by fingerprint
}

// join folds the signals of parts into those that own them, and names the owner of several informers' watches.
func (d *Detector) join(signals map[string]*signal, now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(signals)) {
		if s := signals[name]; strings.HasPrefix(s.resource, severalWatches) {
			d.adopt(signals, name, now)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(signals)) {
		s := signals[name]
		if !s.isPart() && !s.isCounted() {
			continue
		}
		owner := ownerByAccount(signals, s)
		if owner == nil && s.root != "" && s.isPart() {
			owner = d.ownerBySpans(signals, s)
		}
		if owner != nil {
			owner.take(s)
			d.joining.joined[name] = now
		}
	}
	for name, at := range d.joining.joined {
		if now.Sub(at) > d.timing.quiet {
			delete(d.joining.joined, name)
			continue
		}
		delete(signals, name)
		d.retire(name, now)
	}
}

// take makes a part's signal one of its owner's. What is known to end by itself stays no alarm.
func (s *signal) take(part *signal) {
	s.parts = append(s.parts, part.stack)
	if !s.bounded && part.level > s.level {
		s.level, s.tier = part.level, part.tier
	}
}

// retire ends the track of a finding that has become part of another.
func (d *Detector) retire(name string, now time.Time) {
	tr := d.tracks[name]
	switch {
	case tr == nil || tr.finding.State == StateResolved:
	case tr.finding.State == StateFiring: // it was said, so that it is over has to be said, too
		tr.finding.State, tr.ended = StateResolved, now
	default:
		delete(d.tracks, name)
	}
}

// ownerByAccount finds the account of a probe that a part belongs to. It explains the parts of all that is open at its place,
// also of what is not known to be lost yet. Not every account knows its controller, nor does a connection that was opened
// while the labels were taken off.
func ownerByAccount(signals map[string]*signal, part *signal) (owner *signal) {
	total := 0
	root := part.root
	if strings.HasPrefix(part.resource, descriptors) {
		root = readLoop // a connection's
	}
	probe, resources := accountsOf(root)
	for _, s := range signals {
		if s.rule != ruleAccounting || kindOf(s.category) != probe || !hasAnyPrefix(s.resource, resources) || !s.mayOwn(part) {
			continue
		}
		total += s.owned
		if owner == nil || s.stronger(owner) {
			owner = s
		}
	}
	if owner == nil || !fits(part.settled, total) {
		return nil
	}
	return owner
}

// mayOwn reports whether nothing says that two signals are about different controllers.
func (s *signal) mayOwn(part *signal) bool {
	return s.controller == part.controller || s.controller == "" || part.controller == ""
}

// ownerBySpans finds the signal about goroutines of the same reconciles that a part comes with.
func (d *Detector) ownerBySpans(signals map[string]*signal, part *signal) *signal {
	place := d.orphans.places[placeKey{part.controller, part.root}]
	if place == nil || len(place.spans) == 0 {
		return ownerByNumber(signals, part)
	}
	leader := d.orphans.leader(place)
	if leader == nil {
		return nil
	}
	culprit, _ := blame(leader.sample.Stack, frame.Frame{}, d.main)
	s := signals[fingerprint(goroutineKind, culprit.Function, leader.controller)]
	if s == nil || !fits(place.goroutines, leader.goroutines) {
		return nil
	}
	return s
}

// ownerByNumber finds the orphans that a part comes with which is only known by its number.
func ownerByNumber(signals map[string]*signal, part *signal) (owner *signal) {
	for _, s := range signals {
		switch {
		case s.root == "" || s.controller != part.controller || !fits(part.settled, s.settled):
		case part.root == readLoop && s.root == writeLoop:
			return s
		case part.controller != "" && !isPart(s.root) && (owner == nil || s.stronger(owner)):
			owner = s
		}
	}
	return owner
}

// leader finds the place of one controller that is no part and whose goroutines belong to the reconciles of a part's; nil for
// none. The one with the fewest other reconciles is the closest.
func (t *orphanTable) leader(part *orphanPlace) (best *orphanPlace) {
	for key, p := range t.places {
		if key.controller != part.controller || p.sample == nil || isPart(key.root) {
			continue
		}
		if p.holds(part) && (best == nil || cmp.Or(cmp.Compare(len(p.spans), len(best.spans)), strings.Compare(key.root, best.root)) < 0) {
			best = p
		}
	}
	return best
}

// holds reports whether nearly all reconciles that left a part behind have left a goroutine of the place behind.
func (p *orphanPlace) holds(part *orphanPlace) bool {
	same := 0
	for seq := range part.spans {
		if p.spans[seq] {
			same++
		}
	}
	return same > 0 && 5*same >= 4*len(part.spans)
}

// severalWatches is what the resource of several watches of one selection starts with.
const severalWatches = "several: "

// adopt gives the watches of several informers to the goroutines that run the informers, when those are orphans: who ran
// them is the one to blame. Of several controllers it is the one with the most: the others may have one each.
func (d *Detector) adopt(signals map[string]*signal, name string, now time.Time) {
	s := signals[name]
	leader := d.orphans.runner(s)
	if leader == nil {
		return
	}
	delete(signals, name)
	d.retire(name, now)
	own := *s
	own.resource, own.controller, own.category, own.root = "", leader.controller, orphanCategory, leader.root
	own.count, own.young = min(own.count, int64(leader.goroutines)), 0
	own.culprit, own.pattern = blame(leader.sample.Stack, frame.Frame{}, d.main)
	own.parts = append(own.parts, s.stack)
	own.stack, own.sample, own.waitReason, own.settled = leader.sample.Stack, leader.sample, leader.sample.WaitReason, leader.goroutines
	d.collect(signals, own)
}

// runner finds the largest place that runs informers, when such places explain all the watches of a signal; nil otherwise.
func (t *orphanTable) runner(s *signal) (most *orphanPlace) {
	parts, runners := 0, 0
	for key, p := range t.places {
		if !hasAnyPrefix(key.root, receiveRoots[:]) || (s.controller != "" && s.controller != key.controller) {
			continue
		}
		l := t.leader(p)
		if l == nil {
			continue
		}
		parts, runners = parts+p.goroutines, runners+l.goroutines
		if most == nil || cmp.Or(cmp.Compare(l.goroutines, most.goroutines), strings.Compare(most.controller, l.controller)) > 0 {
			most = l
		}
	}
	if 5*parts < 4*int(s.count) || !fits(int(s.count), runners) {
		return nil
	}
	return most
}
