package probes

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// watchesClimb is the least number of watches of one selection that may be a leak when it climbs. Two or three may be the
// caches of as many managers.
const watchesClimb = 4

// openWatches is the open watches of one selection.
type openWatches struct {
	target string
	n      int // without those that a span has left open, which are counted by themselves
	sample entryView
	all    []entryView // also those that a span has left open
	aged   int         // of all, how many are older than the grace
	places map[groupKey]bool
}

// noteWatch takes in an open watch; left is set for one that a span has left open.
func noteWatch(open map[string]*openWatches, v *entryView, left bool, grace time.Duration) {
	o := open[v.target]
	if o == nil {
		o = &openWatches{target: v.target, places: map[groupKey]bool{}}
		open[v.target] = o
	}
	if len(o.all) == 0 || (o.sample.scope == "" && v.scope != "") {
		o.sample = *v
	}
	o.all = append(o.all, *v)
	o.places[groupKey{viewPlace(v), v.scope}] = true
	if !left {
		o.n++
	}
	if v.age >= max(grace, 0) {
		o.aged++
	}
}

// count is how many watches there are, by themselves or, of different places, with those that spans have left open: of one
// place, these are known to the ledger. It is worth a line when two are older than the grace, for a watch that is opened
// again may overlap with its predecessor.
func (o *openWatches) count() (n int, listed bool) {
	n = o.n
	if n < 2 && len(o.places) > 1 {
		n = len(o.all)
	}
	return n, n > 1 && o.aged > 1
}

// watchReadings gives the selections that are watched more than once.
func (t *Transport) watchReadings(dst []Reading, open map[string]*openWatches) []Reading {
	var several []*openWatches
	for _, o := range open {
		if n, _ := o.count(); n > 1 {
			several = append(several, o)
		}
	}
	slices.SortFunc(several, func(a, b *openWatches) int {
		return cmp.Or(cmp.Compare(len(b.all), len(a.all)), cmp.Compare(a.target, b.target))
	})
	for i, o := range several {
		climbs := t.watches.Observe(o.target, o.n) >= Climbing
		if i < maxReadings {
			dst = append(dst, t.severalReading(o, climbs && o.n >= watchesClimb))
		}
	}
	t.watches.EndRound()
	return dst
}

func (t *Transport) severalReading(o *openWatches, climbs bool) Reading {
	n, listed := o.count()
	oldest := t.ledger.oldest(o.all, maxNamed)
	return Reading{
		Resource: severalOf(o.target), Scope: o.sample.scope, Count: float64(n), Covariate: 1, Climbing: climbs, Listed: listed, Open: oldest,
		Culprit: o.sample.site.Culprit(t.ledger.Options().MainModule), Stack: o.sample.site.Frames(), Trap: "S1-04",
		Reason: fmt.Sprintf("%d watches of one resource and selector are open at once (%s); one would do%s", n, describe(o.target), openedAt(oldest)),
		Advice: "share one informer: use the manager's cache, or stop each informer factory and cache with the work that started it",
	}
}

// severalOf names the watches of one resource: the selectors of a watch are in its reading's reason, as there may be many.
func severalOf(target string) string {
	what, _, _ := strings.Cut(describe(target), " by ")
	return "several: " + what
}

// maxNamed bounds the watches of one selection that are told one by one.
const maxNamed = 4

// openedAt says where watches were opened and how long ago.
func openedAt(list []Opened) string {
	var b strings.Builder
	for i := range list[:min(len(list), maxNamed)] {
		o := &list[i]
		fmt.Fprintf(&b, ", %v ago", o.Age.Round(100*time.Millisecond))
		if o.Culprit.IsZero() {
			b.WriteString(" by a library, such as an informer")
		} else {
			b.WriteString(" at " + o.Culprit.Position())
		}
		if o.Scope != "" {
			b.WriteString(" for " + o.Scope)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "; opened" + strings.TrimPrefix(b.String(), ",")
}

// endsItself is how long a watch lives at most, because its request says so: the server ends it then. It is 0 for a watch
// without a timeout, and for one that is opened again when it has ended, as informers do with theirs.
func endsItself(r *http.Request, watch bool, site Site) time.Duration {
	if !watch {
		return 0
	}
	timeout := timeoutOf(r.URL.RawQuery)
	if timeout == 0 || renews(site) {
		return 0
	}
	return timeout
}

// timeoutOf reads the timeoutSeconds of a query; 0 for none.
func timeoutOf(raw string) time.Duration {
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if value, ok := strings.CutPrefix(pair, "timeoutSeconds="); ok {
			seconds, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				return 0
			}
			return time.Duration(min(seconds, math.MaxInt32)) * time.Second //nolint:gosec // it fits
		}
	}
	return 0
}

// renewers open a new watch when theirs has ended.
var renewers = [...]string{"k8s.io/client-go/tools/cache.(*Reflector)", "k8s.io/client-go/tools/watch.(*RetryWatcher)"}

// renews reports whether a watch was opened by one of the renewers.
func renews(site Site) bool {
	for _, f := range site.Frames() {
		for _, prefix := range renewers {
			if strings.HasPrefix(f.Function, prefix) {
				return true
			}
		}
	}
	return false
}
