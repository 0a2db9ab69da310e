package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leakguard/leakguard/stackmatch"
)

// maxKept bounds how many dumps watch keeps: when there are more, every second of the older ones goes.
const maxKept = 32

// runWatch takes dumps of a process at intervals.
func runWatch(ctx context.Context, args []string, env *environment) (int, error) {
	var s settings
	fs := newFlags("watch", "[flags] URL", env, &s)
	analysisFlags(fs, &s)
	fs.DurationVar(&s.every, "every", 10*time.Second, "time between two dumps")
	period := fs.Duration("for", 5*time.Minute, "how long to watch")
	light := fs.Bool("light", false, "take debug=1, which does not stop the process but has no minutes and creators")
	names, err := parse(fs, args, &s)
	if err != nil {
		return exitTrouble, err
	}
	if len(names) != 1 {
		fs.Usage()
		return exitTrouble, errUsage
	}
	if !isURL(names[0]) {
		return exitTrouble, fmt.Errorf("stackmatch: watch needs a URL (http://localhost:6060), got %q", names[0])
	}
	if s.every <= 0 || *period < 0 {
		return exitTrouble, errors.New("stackmatch: -every must be above zero and -for not below")
	}
	options, err := s.options()
	if err != nil {
		return exitTrouble, err
	}
	w := watcher{in: input{env: env, s: &s, light: *light}, url: names[0], every: s.every, period: *period}
	if err = w.watch(ctx); err != nil {
		return exitTrouble, err
	}
	r, err := w.report(options)
	if err != nil {
		return exitTrouble, err
	}
	return finish(r, &s, env)
}

// report analyses the dumps that were taken.
func (w *watcher) report(options stackmatch.Options) (*report, error) {
	options.Times = w.times
	analysis, err := stackmatch.Analyze(w.dumps, options)
	if err != nil {
		return nil, explain(err, len(w.dumps))
	}
	changes := stackmatch.Changes(w.dumps, options.Main)
	return &report{Analysis: analysis, Changes: &changes, dumps: len(w.dumps)}, nil
}

// watcher takes the dumps.
type watcher struct {
	in            input
	url           string
	every, period time.Duration
	dumps         []*stackmatch.Dump
	times         []time.Time
}

// watch takes dumps until the period is over or the user interrupts; then what there is is analysed. The first dump must
// succeed; a later one that fails is reported and left out.
func (w *watcher) watch(ctx context.Context) error {
	end := time.Now().Add(w.period)
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		if err := w.take(ctx); err != nil {
			switch {
			case ctx.Err() != nil && len(w.dumps) > 0:
				return nil
			case len(w.dumps) == 0:
				return err
			}
			w.say("%s", message(err))
		}
		if time.Until(end) < w.every {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// take takes one dump.
func (w *watcher) take(ctx context.Context) error {
	at := time.Now()
	dumps, err := w.in.read(ctx, w.url)
	if err != nil {
		return err
	}
	d := largest(dumps)
	w.dumps, w.times = append(w.dumps, d), append(w.times, at)
	w.say("stackmatch: %s: %s", at.Format(time.TimeOnly), plural(d.Total, "goroutine"))
	w.thin()
	return nil
}

// thin drops every second dump but the first and the last when there are too many.
func (w *watcher) thin() {
	if len(w.dumps) <= maxKept {
		return
	}
	kept := 0
	for i := range w.dumps {
		if i%2 == 0 || i == len(w.dumps)-1 {
			w.dumps[kept], w.times[kept] = w.dumps[i], w.times[i]
			kept++
		}
	}
	clear(w.dumps[kept:])
	w.dumps, w.times = w.dumps[:kept], w.times[:kept]
}

// say prints progress.
func (w *watcher) say(format string, args ...any) {
	if !w.in.s.quiet {
		_, _ = fmt.Fprintf(w.in.env.stderr, format+"\n", args...) // progress only
	}
}
