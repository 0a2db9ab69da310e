package miniapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// watchTimeout ends a watch that asked for no other end; the real server takes 30 to 60 minutes.
	watchTimeout = 30 * time.Minute
	// bookmarkEvery is how often a watch that asked for bookmarks gets one.
	bookmarkEvery = time.Minute
)

// matcher gives the filter of a request: its namespace, label selector and field selector.
func (c call) matcher() (func(*unstructured.Unstructured) bool, error) {
	query := c.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range byField.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return nil, apierrors.NewBadRequest("field selectors other than metadata.name and metadata.namespace are not supported: " + r.Field)
		}
	}
	return func(o *unstructured.Unstructured) bool {
		return (c.namespace == "" || o.GetNamespace() == c.namespace) && byLabel.Matches(labels.Set(o.GetLabels())) &&
			byField.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()})
	}, nil
}

func (s *Server) list(w http.ResponseWriter, c call) {
	match, err := c.matcher()
	if err != nil {
		fail(w, err)
		return
	}
	s.store.mu.Lock()
	objects, version := c.table.list(match), s.store.version
	s.store.mu.Unlock()
	items := make([]map[string]any, 0, len(objects))
	for _, o := range objects {
		items = append(items, o.Object)
	}
	reply(w, http.StatusOK, map[string]any{
		"kind": c.table.Kind + "List", "apiVersion": c.table.GroupVersion(),
		"metadata": map[string]any{"resourceVersion": strconv.FormatUint(version, 10)}, "items": items,
	})
}

// watcher is one open watch.
type watcher struct {
	call
	match   func(*unstructured.Unstructured) bool
	encoder *json.Encoder
	flush   func() error
	// version is up to where the client knows everything.
	version uint64
}

func (s *Server) watch(w http.ResponseWriter, c call) {
	match, err := c.matcher()
	if err != nil {
		fail(w, err)
		return
	}
	initial, version, err := s.start(c, match)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	wr := &watcher{call: c, match: match, encoder: json.NewEncoder(w), flush: http.NewResponseController(w).Flush, version: version}
	for _, o := range initial {
		if wr.encoder.Encode(event(watch.Added, o.Object)) != nil {
			return
		}
	}
	if c.URL.Query().Get("sendInitialEvents") == "true" && wr.bookmark(true) != nil {
		return
	}
	if wr.flush() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context(), c.timeout())
	defer cancel()
	s.stream(ctx, wr)
}

// start gives the objects that a watch begins with and the version that it goes on from. Without a version, or asked for
// initial events, it begins with all that is there.
func (s *Server) start(c call, match func(*unstructured.Unstructured) bool) ([]*unstructured.Unstructured, uint64, error) {
	query := c.URL.Query()
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	from := query.Get("resourceVersion")
	if from == "" || from == "0" || query.Get("sendInitialEvents") == "true" {
		return c.table.list(match), s.store.version, nil
	}
	version, err := strconv.ParseUint(from, 10, 64)
	switch {
	case err != nil:
		return nil, 0, apierrors.NewBadRequest("resourceVersion: " + err.Error())
	case version < c.table.expired:
		return nil, 0, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, c.table.expired))
	case version > s.store.version:
		return nil, 0, apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, s.store.version), 1)
	}
	return nil, version, nil
}

// stream sends changes as they come, until the client goes away, the time is over or the server stops.
func (s *Server) stream(ctx context.Context, w *watcher) {
	var bookmarks <-chan time.Time
	if w.URL.Query().Get("allowWatchBookmarks") == "true" {
		ticker := time.NewTicker(bookmarkEvery)
		defer ticker.Stop()
		bookmarks = ticker.C
	}
	for {
		s.store.mu.Lock()
		changes, version, expired, changed := w.table.since(w.version), s.store.version, w.table.expired, s.store.changed
		s.store.mu.Unlock()
		if w.version < expired {
			gone := apierrors.NewResourceExpired("the watch fell too far behind").Status()
			_ = w.encoder.Encode(event(watch.Error, gone))
			return
		}
		if w.send(changes) != nil {
			return
		}
		w.version = version
		select {
		case <-changed:
		case <-bookmarks:
			if w.bookmark(false) != nil || w.flush() != nil {
				return
			}
		case <-ctx.Done():
			return
		case <-s.stop:
			return
		}
	}
}

// send passes on what the selectors let through. An object that begins or ceases to match is added or deleted for this client.
func (w *watcher) send(changes []change) error {
	sent := false
	for _, c := range changes {
		now, before := w.match(c.object), c.before != nil && w.match(c.before)
		kind := c.kind
		switch {
		case !now && !before:
			continue
		case kind != watch.Deleted && now && !before:
			kind = watch.Added
		case !now:
			kind = watch.Deleted
		}
		if err := w.encoder.Encode(event(kind, c.object.Object)); err != nil {
			return err
		}
		sent = true
	}
	if !sent {
		return nil
	}
	return w.flush()
}

// bookmark tells the client how far it is, and with end that all initial objects were sent.
func (w *watcher) bookmark(end bool) error {
	metadata := map[string]any{"resourceVersion": strconv.FormatUint(w.version, 10)}
	if end {
		metadata["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	object := map[string]any{"kind": w.table.Kind, "apiVersion": w.table.GroupVersion(), "metadata": metadata}
	return w.encoder.Encode(event(watch.Bookmark, object))
}

func event(kind watch.EventType, object any) map[string]any {
	return map[string]any{"type": string(kind), "object": object}
}

func (c call) timeout() time.Duration {
	if n, err := strconv.Atoi(c.URL.Query().Get("timeoutSeconds")); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	return watchTimeout
}
