package miniapi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// logLimit bounds how many changes of one resource a watch can go back; half of them are dropped when it is reached.
const logLimit = 10_000

// change is one event of a resource. The objects are immutable once stored.
type change struct {
	version uint64
	kind    watch.EventType
	object  *unstructured.Unstructured
	// before is the object that a change replaced or removed: selectors ask whether it matched.
	before *unstructured.Unstructured
}

// table holds the objects of one resource and its latest changes.
type table struct {
	Resource
	objects map[string]*unstructured.Unstructured // "namespace/name"
	log     []change
	// expired is the version up to which changes were dropped: a watch must start there or later.
	expired uint64
}

// store is the state of the server. Everything in it is guarded by mu.
type store struct {
	mu      sync.Mutex
	version uint64
	tables  map[string]*table
	// changed is closed and replaced at every change: watches wait for it.
	changed chan struct{}
	journal *journal
}

func newStore(resources []Resource) *store {
	s := &store{version: 1, tables: map[string]*table{}, changed: make(chan struct{})}
	for _, r := range resources {
		s.tables[r.key()] = &table{Resource: r, objects: map[string]*unstructured.Unstructured{}}
	}
	return s
}

// commitLocked gives an object its new resource version, writes it to the journal and only then to the table. The
// object belongs to the store afterwards.
func (s *store) commitLocked(t *table, kind watch.EventType, object *unstructured.Unstructured) error {
	object.SetGroupVersionKind(t.gvk())
	object.SetResourceVersion(strconv.FormatUint(s.version+1, 10))
	if s.journal != nil {
		if err := s.journal.append(entry{Type: string(kind), Resource: t.key(), Object: object.Object}); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	s.version++
	t.apply(kind, s.version, object)
	close(s.changed)
	s.changed = make(chan struct{})
	return s.compactLocked()
}

// apply makes a change that has its version.
func (t *table) apply(kind watch.EventType, version uint64, object *unstructured.Unstructured) {
	k := objectKey(object.GetNamespace(), object.GetName())
	t.log = append(t.log, change{version: version, kind: kind, object: object, before: t.objects[k]})
	if kind == watch.Deleted {
		delete(t.objects, k)
	} else {
		t.objects[k] = object
	}
	if len(t.log) > logLimit {
		t.expired = t.log[logLimit/2-1].version
		t.log = slices.Clone(t.log[logLimit/2:])
	}
}

// since gives the changes after a version. The slice must not be written to.
func (t *table) since(version uint64) []change {
	i, _ := slices.BinarySearchFunc(t.log, version+1, func(c change, v uint64) int { return cmp.Compare(c.version, v) })
	return t.log[i:len(t.log):len(t.log)]
}

// list gives the objects that match, ordered by namespace and name.
func (t *table) list(match func(*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range t.objects {
		if match(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(objectKey(a.GetNamespace(), a.GetName()), objectKey(b.GetNamespace(), b.GetName()))
	})
	return out
}

// restore replays one journal entry.
func (s *store) restore(e entry) error {
	if e.Type == snapshotEntry {
		s.version = e.Version
		for _, t := range s.tables {
			t.expired = e.Version
		}
		return nil
	}
	t := s.tables[e.Resource]
	if t == nil {
		return fmt.Errorf("unknown resource %q", e.Resource)
	}
	object := &unstructured.Unstructured{Object: e.Object}
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("resource version: %w", err)
	}
	if e.Type == storedEntry {
		t.objects[objectKey(object.GetNamespace(), object.GetName())] = object
		return nil
	}
	s.version = max(s.version, version)
	t.apply(watch.EventType(e.Type), version, object)
	return nil
}

// compactLocked rewrites the journal as a snapshot when it has grown too large. Changes up to now are then unknown to the
// server that is started next, as after a compaction of etcd.
func (s *store) compactLocked() error {
	if s.journal == nil || s.journal.size < s.journal.limit {
		return nil
	}
	entries := []entry{{Type: snapshotEntry, Version: s.version}}
	for _, t := range s.tables {
		for _, o := range t.objects {
			entries = append(entries, entry{Type: storedEntry, Resource: t.key(), Object: o.Object})
		}
	}
	if err := s.journal.rewrite(entries); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

func objectKey(namespace, name string) string {
	return namespace + "/" + name
}
