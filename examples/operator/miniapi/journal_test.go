package miniapi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

func testResource() Resource {
	return Resource{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true}
}

// state gives all that a restart must keep.
func (s *Server) state() map[string]any {
	out := map[string]any{"version": s.store.version}
	for _, t := range s.store.tables {
		for k, o := range t.objects {
			out[k] = o.Object
		}
	}
	return out
}

func TestJournalIsRewrittenWhenItHasGrown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(dir, testResource())
	if err != nil {
		t.Fatal(err)
	}
	s.store.journal.limit = 4 << 10
	table := s.store.tables[testResource().key()]
	for i := range 200 {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": int64(i), "half": 0.5}}
		o.SetName(fmt.Sprintf("w%d", i%5))
		if err = s.store.commitLocked(table, watch.Modified, o); err != nil {
			t.Fatal(err)
		}
	}
	want := s.state()
	if err = s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 5<<10 {
		t.Errorf("got a journal of %d bytes, want that it was rewritten at 4 KiB", info.Size())
	}
	again, err := Open(dir, testResource())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if diff := cmp.Diff(want, again.state()); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	if expired := again.store.tables[testResource().key()].expired; expired == 0 {
		t.Error("the changes before the snapshot are not known to be lost")
	}
}

func TestJournalSaysWhichLineIsBad(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, journal, want string }{
		{"no JSON", "{}x\n", "line 1"},
		{"unknown resource", `{"type":"SNAPSHOT","version":7}` + "\n" + `{"type":"ADDED","resource":"a/b/c","object":{}}` + "\n", "line 2"},
		{"no version", `{"type":"ADDED","resource":"example.com/v1/widgets","object":{"metadata":{"name":"a"}}}` + "\n", "resource version"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "journal.jsonl"), []byte(test.journal), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, testResource())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q in it", test.name, err, test.want)
		}
	}
}

// FuzzJournal feeds any bytes as a journal: an error or a server, never a panic, and what was read once reads the same again.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","resource":"example.com/v1/widgets","object":{"metadata":{"name":"a","resourceVersion":"3"}}}` + "\n{"))
	f.Add([]byte(`{"type":"SNAPSHOT","version":9}` + "\n" + `{"type":"STORED","resource":"example.com/v1/widgets","object":{"metadata":{"name":"a","resourceVersion":"3"},"x":[1,2.5]}}` + "\n"))
	f.Add([]byte(`{"type":"DELETED","resource":"example.com/v1/widgets","object":{"metadata":5,"a":null}}` + "\n"))
	f.Fuzz(func(t *testing.T, journal []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "journal.jsonl"), journal, 0o600); err != nil {
			t.Fatal(err)
		}
		first, err := Open(dir, testResource())
		if err != nil {
			return
		}
		want := first.state()
		if err = first.Close(); err != nil {
			t.Fatal(err)
		}
		second, err := Open(dir, testResource())
		if err != nil {
			t.Fatalf("the second time: %v", err)
		}
		if diff := cmp.Diff(want, second.state()); diff != "" {
			t.Errorf("-first +second:\n%s", diff)
		}
		if err = second.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
