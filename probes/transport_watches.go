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

// watchesLeaked is the least number of watches of one selection that is a leak when it climbs. Two or three may be the
// caches of as many managers.
const watchesLeaked = 4

// openWatches is the open watches of one selection.
type openWatches struct {
	target string
	n      int
	sample entryView
}

func noteWatch(open map[string]*openWatches, v *entryView) {
	o := open[v.target]
	if o == nil {
		o = &openWatches{target: v.target, sample: *v}
		open[v.target] = o
	}
	o.n++
	if o.sample.scope == "" && v.scope != "" {
		o.sample = *v
	}
}

// watchReadings gives the selections that are watched more than once.
func (t *Transport) watchReadings(dst []Reading, open map[string]*openWatches) []Reading {
	var several []*openWatches
	for _, o := range open {
		if o.n > 1 {
			several = append(several, o)
		}
	}
	slices.SortFunc(several, func(a, b *openWatches) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.target, b.target))
	})
	for i, o := range several {
		climbs := t.watches.Observe(o.target, o.n) >= Climbing
		if i < maxReadings {
			dst = append(dst, t.severalReading(o, climbs && o.n >= watchesLeaked))
		}
	}
	t.watches.EndRound()
	return dst
}

func (t *Transport) severalReading(o *openWatches, leaked bool) Reading {
	what := describe(o.target)
	return Reading{
		Resource: "several: " + what, Scope: o.sample.scope, Count: float64(o.n), Covariate: 1, Leaked: leaked,
		Culprit: o.sample.site.Culprit(t.ledger.options.MainModule), Stack: o.sample.site.Frames(), Trap: "S1-04",
		Reason: fmt.Sprintf("%d watches of one resource and selector are open at once (%s); one would do", o.n, what),
		Advice: "share one informer: use the manager's cache, or stop each informer factory and cache with the work that started it",
	}
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
