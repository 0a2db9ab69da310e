package memstats

import (
	"slices"
	"strings"
	"time"
)

// ReplayOptions configures [Replay]. The zero value works.
type ReplayOptions struct {
	// Roles overrides what columns are for, by name; see [RoleOf] for the default.
	Roles map[string]Role
	// Counts and Bytes are the thresholds; the zero values are those of [Thresholds] and [ByteThresholds].
	Counts, Bytes Thresholds
	// Every is how often a verdict is asked for; default a 200th of the recording, at least its interval.
	Every time.Duration
	// Gap is a pause in the recording after which all that was before is forgotten; default ten intervals, at least
	// 30 minutes.
	Gap time.Duration
	// LimitBytes is the memory limit for the time that is left; zero means none is known.
	LimitBytes uint64
}

// SeriesVerdict is what a replay says of one column.
type SeriesVerdict struct {
	Name    string  `json:"name"`
	Role    Role    `json:"-"`
	Shape   Shape   `json:"shape"`
	PerHour float64 `json:"per_hour"`
	// Since is when the growth or the step began, nil when there is none. A recording whose seconds begin at zero
	// begins in 1970.
	Since   *time.Time `json:"since"`
	Reason  string     `json:"reason"`
	Outcome Outcome    `json:"-"`
	Verdict Verdict    `json:"-"`
}

// Event is a change of a verdict during a replay.
type Event struct {
	Time    time.Time
	Name    string
	Verdict Verdict
}

// ReplayResult is what a replay found.
type ReplayResult struct {
	// Verdict is the worst of all series at the end, and of those that leaked until a restart ended them.
	Verdict  Outcome         `json:"verdict"`
	Series   []SeriesVerdict `json:"series"`
	Findings []Finding       `json:"findings"`
	// TimeToLimit is there when live memory grows and the limit is known.
	TimeToLimit *TimeToLimit `json:"time_to_limit,omitempty"`
	// Events are the changes of verdicts in time order.
	Events []Event `json:"-"`
	// Lives is the number of process lives in the recording: restarts and gaps plus one.
	Lives int `json:"lives"`
}

// Replay runs a recording through series and verdicts just as they run in an operator, row by row.
func Replay(t *Table, options ReplayOptions) ReplayResult {
	r := newReplay(t, options)
	next := time.Time{}
	for i, at := range t.Times {
		if i > 0 && r.newLife(i) {
			r.endLife()
			next = time.Time{}
		}
		r.add(i)
		if at.Before(next) {
			continue
		}
		next = at.Add(r.every)
		r.judge(at, false)
	}
	if len(t.Times) > 0 {
		r.judge(t.Times[len(t.Times)-1], true)
	}
	return r.result()
}

// column is one series of a replay: a column of the table or the difference of two.
type column struct {
	name         string
	role         Role
	plus, minus  int // indexes into a row; minus is -1 for a plain column
	series       *Series
	judge        *Judge
	verdict      Verdict
	died         Verdict // of a life that ended in a leak
	endedLeaking bool
	leak         Verdict // the newest leak, found at leakAt
	leakAt       time.Time
	peak         float64
}

type replay struct {
	table   *Table
	options ReplayOptions
	columns []*column
	every   time.Duration
	gap     time.Duration
	marks   []Mark
	events  []Event
	lives   int
}

func newReplay(t *Table, options ReplayOptions) *replay {
	r := &replay{table: t, options: options, marks: t.Marks, lives: 1}
	interval := t.interval()
	if r.gap = options.Gap; r.gap <= 0 {
		r.gap = max(10*interval, 30*time.Minute)
	}
	if r.every = options.Every; r.every <= 0 && len(t.Times) > 0 {
		r.every = max(interval, t.Times[len(t.Times)-1].Sub(t.Times[0])/200)
	}
	layout := Full()
	for i, name := range t.Columns {
		r.columns = append(r.columns, r.newColumn(name, r.role(name), i, -1, layout))
	}
	for _, p := range pairings() {
		r.addPair(p, layout)
	}
	return r
}

func (r *replay) role(name string) Role {
	if role, ok := r.options.Roles[name]; ok {
		return role
	}
	return RoleOf(name)
}

func (r *replay) newColumn(name string, role Role, plus, minus int, layout *Layout) *column {
	return &column{name: name, role: role, plus: plus, minus: minus, series: NewSeries(layout), judge: NewJudge(r.thresholds(name, role)), verdict: noVerdict()}
}

// noVerdict is the verdict before the first value.
func noVerdict() Verdict { return Verdict{P: 1, Reason: "no values"} }

// thresholds are those of the options, with more room for numbers that move in large steps by themselves.
func (r *replay) thresholds(name string, role Role) Thresholds {
	t := r.options.Counts
	name = normalName(name)
	switch {
	case role == RoleBytes || role == RoleResident || role == RoleDerived && !strings.Contains(name, "gc"):
		t = r.options.Bytes
		if t == (Thresholds{}) {
			t = ByteThresholds()
			t.Garbage = role == RoleBytes && !strings.Contains(name, "live")
		}
	case t != (Thresholds{}):
	case strings.Contains(name, "heap_objects"):
		t = Thresholds{MinRise: 20_000, Unit: "objects", Garbage: true}
	case strings.HasSuffix(name, "seconds"):
		t = Thresholds{MinRise: 600, Unit: "seconds"}
	}
	return t
}

// addPair adds the difference of two counters when the recording has both.
func (r *replay) addPair(p pairing, layout *Layout) {
	for i, name := range r.table.Columns {
		stem, ok := strings.CutSuffix(normalName(name), p.plus)
		if !ok {
			continue
		}
		minus := r.table.index(stem + p.minus)
		joined := stem + p.name
		if minus < 0 || slices.ContainsFunc(r.columns, func(c *column) bool { return normalName(c.name) == joined }) {
			continue
		}
		role := p.role
		if forced, ok := r.options.Roles[joined]; ok {
			role = forced
		}
		r.columns = append(r.columns, r.newColumn(joined, role, i, minus, layout))
	}
}

// index finds a column by its normal name, -1 for none.
func (t *Table) index(name string) int {
	return slices.IndexFunc(t.Columns, func(c string) bool { return normalName(c) == name })
}

// interval is the median time between rows.
func (t *Table) interval() time.Duration {
	var steps []float64
	for i := 1; i < len(t.Times); i++ {
		steps = append(steps, float64(t.Times[i].Sub(t.Times[i-1])))
	}
	if len(steps) == 0 {
		return time.Second
	}
	return max(1, time.Duration(median(steps)))
}

// newLife says whether row i belongs to another process, or comes after a gap: a start time changed, a counter fell,
// a mark says so.
func (r *replay) newLife(i int) bool {
	at, before := r.table.Times[i], r.table.Times[i-1]
	if r.markedUntil(at) || at.Sub(before) > r.gap {
		return true
	}
	return slices.ContainsFunc(r.columns, func(c *column) bool { return c.restarted(r.table.Rows[i-1], r.table.Rows[i]) })
}

// markedUntil takes the marks until a time and says whether one of them speaks of a new process.
func (r *replay) markedUntil(at time.Time) (anew bool) {
	for len(r.marks) > 0 && !r.marks[0].Time.After(at) {
		event := strings.ToLower(r.marks[0].Event)
		r.marks = r.marks[1:]
		for _, word := range []string{"restart", "version", "upgrade", "deploy", "rollout", "oom", "crash"} {
			anew = anew || strings.Contains(event, word)
		}
	}
	return anew
}

// restarted says whether a column tells two rows of different processes apart.
func (c *column) restarted(before, row []float64) bool {
	if c.minus >= 0 {
		return false
	}
	now, was := row[c.plus], before[c.plus]
	switch c.role {
	case RoleRestart:
		return now < was || now > was // not when either is NaN
	case RoleWork:
		return now < 0.5*was
	case RoleCount, RoleBytes, RoleResident, RoleBacklog, RoleLoad, RoleDerived:
	}
	return false
}

// endLife keeps what leaked until the end and forgets the rest.
func (r *replay) endLife() {
	r.lives++
	for _, c := range r.columns {
		if c.verdict.Outcome == Leak {
			c.died, c.endedLeaking = c.verdict, true
		}
		c.verdict, c.leak, c.peak = noVerdict(), Verdict{}, 0
		c.series.Reset()
	}
}

func (r *replay) add(i int) {
	row := r.table.Rows[i]
	for _, c := range r.columns {
		v := row[c.plus]
		if c.minus >= 0 {
			v -= row[c.minus]
		}
		if !inRange(v) {
			continue
		}
		c.series.Add(r.table.Times[i], v)
		c.peak = max(c.peak, v)
	}
}

// Source says where a series of the result comes from: a column of the table (minus is -1), or the difference of two.
func (ReplayResult) Source(t *Table, name string) (plus, minus int, ok bool) {
	if i := slices.Index(t.Columns, name); i >= 0 {
		return i, -1, true
	}
	for _, p := range pairings() {
		stem, found := strings.CutSuffix(name, p.name)
		if !found {
			continue
		}
		plus, minus = t.index(stem+p.plus), t.index(stem+p.minus)
		if plus >= 0 && minus >= 0 {
			return plus, minus, true
		}
	}
	return 0, 0, false
}
