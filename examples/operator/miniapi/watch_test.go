package miniapi_test

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWatchFollowsChanges(t *testing.T) {
	t.Parallel()
	c := connect(t, serve(t, t.TempDir()).Identity)
	ctx := t.Context()
	before := newWidget("before")
	must(t, c.Create(ctx, before))
	list := widgets()
	must(t, c.List(ctx, list))
	w, err := c.Watch(ctx, widgets(), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	must(t, err)
	defer w.Stop()
	o := newWidget("a")
	must(t, c.Create(ctx, o))
	o.SetLabels(map[string]string{"a": "b"})
	must(t, c.Update(ctx, o))
	must(t, c.Delete(ctx, o))
	versions := map[string]bool{}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		got, object := next(t, w)
		if got != want || object.GetName() != "a" {
			t.Errorf("got %s of %s, want %s of a", got, object.GetName(), want)
		}
		versions[object.GetResourceVersion()] = true
	}
	if len(versions) != 3 {
		t.Errorf("got the versions %v, want three", versions)
	}
}

func TestWatchListBeginsWithWhatIsThere(t *testing.T) {
	t.Parallel()
	c := connect(t, serve(t, t.TempDir()).Identity)
	must(t, c.Create(t.Context(), newWidget("a")))
	must(t, c.Create(t.Context(), newWidget("b")))
	w, err := c.Watch(t.Context(), widgets(), &client.ListOptions{Raw: &metav1.ListOptions{
		SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}})
	must(t, err)
	defer w.Stop()
	for _, want := range []string{"a", "b"} {
		if kind, o := next(t, w); kind != watch.Added || o.GetName() != want {
			t.Errorf("got %s of %s, want ADDED of %s", kind, o.GetName(), want)
		}
	}
	if kind, o := next(t, w); kind != watch.Bookmark || o.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("got %s %v, want the bookmark that ends the list", kind, o)
	}
}

func TestWatchWithASelector(t *testing.T) {
	t.Parallel()
	c := connect(t, serve(t, t.TempDir()).Identity)
	ctx := t.Context()
	w, err := c.Watch(ctx, widgets(), &client.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"color": "red"})})
	must(t, err)
	defer w.Stop()
	o := newWidget("a")
	must(t, c.Create(ctx, o)) // not seen
	for _, color := range []string{"red", "red", "blue", "green", "red"} {
		o.SetLabels(map[string]string{"color": color, "version": o.GetResourceVersion()})
		must(t, c.Update(ctx, o))
	}
	for i, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Added} {
		if got, _ := next(t, w); got != want {
			t.Errorf("event %d: got %s, want %s", i, got, want)
		}
	}
}

func TestWatchEndsWithItsTimeout(t *testing.T) {
	t.Parallel()
	c := connect(t, serve(t, t.TempDir()).Identity)
	w, err := c.Watch(t.Context(), widgets(), &client.ListOptions{Raw: &metav1.ListOptions{TimeoutSeconds: new(int64(1))}})
	must(t, err)
	defer w.Stop()
	select {
	case e, ok := <-w.ResultChan():
		if ok {
			t.Errorf("got %v, want the end", e)
		}
	case <-time.After(20 * time.Second): // only reached when the test fails
		t.Error("the watch goes on")
	}
}

func TestWatchTooOldOrTooNew(t *testing.T) {
	t.Parallel()
	c := connect(t, serve(t, t.TempDir()).Identity)
	o := newWidget("a")
	must(t, c.Create(t.Context(), o))
	first := o.GetResourceVersion()
	for i := range 10_001 { // one more than the server remembers
		must(t, c.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"size":%d}}`, i+2))))
	}
	for _, test := range []struct {
		name, version string
		want          func(error) bool
	}{
		{"too old", first, apierrors.IsResourceExpired},
		{"too new", "999999999", apierrors.IsTimeout},
		{"no number", "x", apierrors.IsBadRequest},
	} {
		w, err := c.Watch(t.Context(), widgets(), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: test.version}})
		if !test.want(err) {
			t.Errorf("%s: got %v", test.name, err)
		}
		if err == nil {
			w.Stop()
		}
	}
}
