package clientgo_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/leakguard/leakguard/probes"
)

// TestWatchOfAReflectorIsNotBounded leaves an informer running whose watches name a timeout, as all informers' do: it opens
// another when one has ended.
func TestWatchOfAReflectorIsNotBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := probes.NewScopes()
		transport := probes.NewTransport(probes.LedgerOptions{Scopes: scopes})
		rt := transport.Wrap(roundTripFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
		}))
		life, stop := context.WithCancel(t.Context())
		defer stop()
		for range 4 {
			scopes.Scope("app").Do(life, func(ctx context.Context) {
				lw := &cache.ListWatch{
					ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return &corev1.PodList{}, nil },
					WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
						r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://host/api/v1/pods?watch=true&timeoutSeconds=400", nil)
						if err != nil {
							return nil, err
						}
						if _, err = rt.RoundTrip(r); err != nil { //nolint:bodyclose // left open on purpose
							return nil, err
						}
						return watch.NewFake(), nil
					},
				}
				go cache.NewReflector(lw, &corev1.Pod{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0).RunWithContext(ctx)
			})
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		leaked := 0.0
		for _, r := range transport.Read(t.Context(), nil) {
			if r.Bounded {
				t.Errorf("got %q, want nothing to be bounded", r.Reason)
			}
			if r.Leaked {
				leaked += r.Count
			}
		}
		if leaked != 4 {
			t.Errorf("got %v leaked watches, want 4", leaked)
		}
		stop()
		synctest.Wait()
	})
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
