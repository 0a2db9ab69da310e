package rulefile

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// NeedLeaderElection says that a reloader runs on every replica.
func (r *Reloader) NeedLeaderElection() bool { return false }

// Start reads the file and follows it until ctx ends; then everything it began has returned. A wrong file or a file
// system that cannot be watched is no error: its only one is ErrRunning.
//
// The directory is watched, not the file: the kubelet changes a mounted ConfigMap by renaming a new symbolic link over
// the directory's "..data", and editors rename a new file over the old one. Both make events of the directory only.
func (r *Reloader) Start(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer r.running.Store(false)
	w := newWatch(r)
	defer w.close()
	r.quietly("start")
	polls, stop := r.polls()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-polls:
			w.renew()
			r.quietly("poll")
		case <-w.due:
			w.due = nil
			r.quietly("event")
		case event, ok := <-w.events:
			if !ok {
				w.events = nil // the watcher has ended; polls go on
				continue
			}
			w.event(event)
		case err, ok := <-w.errors:
			if !ok {
				w.errors = nil
				continue
			}
			w.failed(err)
		}
	}
}

// quietly looks at the file; an error is in the records.
func (r *Reloader) quietly(trigger string) {
	if err := r.reload(trigger); err != nil {
		return // counted and recorded
	}
}

// polls gives the channel of the polls; nil when they are switched off.
func (r *Reloader) polls() (polls <-chan time.Time, stop func()) {
	if r.o.Poll < 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(r.o.Poll)
	return ticker.C, ticker.Stop
}

// watch is the file system's side of Start. It belongs to one goroutine.
type watch struct {
	r       *Reloader
	watcher *fsnotify.Watcher // nil when the system has none for us
	events  <-chan fsnotify.Event
	errors  <-chan error
	due     <-chan time.Time // when to look at the file; nil when there was no event
	folder  string
	file    string
}

// newWatch starts to watch the file's directory.
func newWatch(r *Reloader) *watch {
	w := &watch{r: r, folder: filepath.Dir(r.o.Path), file: filepath.Base(r.o.Path)}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		r.counters.watchErrors.Add(1)
		return w
	}
	w.watcher, w.events, w.errors = watcher, watcher.Events, watcher.Errors
	w.renew()
	return w
}

// renew watches the directory again when it is not watched: it did not exist, or it was removed.
func (w *watch) renew() {
	if w.watcher == nil || slices.Contains(w.watcher.WatchList(), w.folder) {
		return
	}
	if err := w.watcher.Add(w.folder); err != nil {
		w.r.counters.watchErrors.Add(1)
	}
}

// event notes an event that can be about the file: one with its name, or with one that a mounted ConfigMap changes by.
func (w *watch) event(e fsnotify.Event) {
	name := filepath.Base(e.Name)
	if name != w.file && !strings.HasPrefix(name, "..") {
		return
	}
	w.r.counters.events.Add(1)
	if w.due == nil {
		w.due = time.After(max(w.r.o.Debounce, 0))
	}
}

// failed counts an error of the watcher. Events may have been lost: look at the file.
func (w *watch) failed(err error) {
	if err == nil {
		return
	}
	w.r.counters.watchErrors.Add(1)
	if w.due == nil {
		w.due = time.After(max(w.r.o.Debounce, 0))
	}
}

// close ends the watcher and waits for its goroutine.
func (w *watch) close() {
	if w.watcher == nil {
		return
	}
	if err := w.watcher.Close(); err != nil {
		w.r.counters.watchErrors.Add(1)
	}
}
