package clientgo_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/leakguard/leakguard/probes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pods is a source of pods for real informers.
type pods struct {
	list  corev1.PodList
	watch *watch.RaceFreeFakeWatcher
}

func newPods(names ...string) *pods {
	p := &pods{watch: watch.NewRaceFreeFake()}
	for _, name := range names {
		p.list.Items = append(p.list.Items, *pod(name, 1))
	}
	return p
}

func pod(name string, version int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: strconv.Itoa(version)}}
}

// listerWatcher gives a lister for one informer.
func (p *pods) listerWatcher() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return p.list.DeepCopy(), nil },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return p.watch, nil
		},
	}, noWatchList{})
}

// noWatchList is a client that cannot stream its lists.
type noWatchList struct{}

func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// readings are a probe's.
func readings(t *testing.T, p probes.Probe) []probes.Reading {
	t.Helper()
	return p.Read(context.Background(), nil)
}

// wantLeaks compares the readings of a probe that are leaked, as "scope: resource count", and those that climb, with
// " climbs" behind.
func wantLeaks(t *testing.T, p probes.Probe, step string, want ...string) {
	t.Helper()
	var got []string
	for _, r := range readings(t, p) {
		text := fmt.Sprintf("%s: %s %v", r.Scope, r.Resource, r.Count)
		switch {
		case r.Leaked:
			got = append(got, text)
		case r.Climbing:
			got = append(got, text+" climbs")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: leaks (-want +got):\n%s", step, diff)
	}
}

// count is what a probe counts of a resource; -1 when it says nothing.
func count(t *testing.T, p probes.Probe, resource string) float64 {
	t.Helper()
	for _, r := range readings(t, p) {
		if r.Resource == resource {
			return r.Count
		}
	}
	return -1
}
