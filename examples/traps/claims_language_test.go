package traps_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

func languageClaims() []claim {
	return []claim{
		{"S1-10", "the stack of a goroutine that waits for ever is not scanned", "it is: what it will still use stays alive, what it will not goes", TestParkedStackIsScanned},
		{"S1-13f", "close(ch) frees a parked sender", "it panics, in the sender's goroutine, which ends the process", TestClosePanics},
		{"S1-15c", "a cleanup may use the object it is for", "runtime.AddCleanup panics when the argument or the function is the object, and leaks it when they only reach it", TestCleanupOfItself},
		{"S1-15d", "finalizers leak objects that point to themselves", "a pointer to itself does no harm; in a cycle of two only SetFinalizer leaks, AddCleanup does not", TestCyclesAndCleanups},
		{"S2-01f", "a sync.Map is a container of weak references", "it holds its values; weak.Pointer does not", TestSyncMapHolds},
		{"S2-01x", "controllerutil.QueueKey makes the key", "there is no such function", TestNoQueueKey},
		{"S2-03", "closing the channel helps a sender that nobody receives from", "as S1-13f: it panics", TestClosePanics},
		{"S2-08", "a struct that cannot be compared makes a map grow silently", "it does not compile as a key; in a map[any] it panics and nothing is added", TestUncomparableKeys},
		{"S2-13", "a dynamic client must be closed", "it has no Close", TestDynamicClientHasNoClose},
		{"S2-15", "SchemeBuilder.Register in a loop is free", "it is a slice that gets longer; AddToScheme of the same types adds none", TestSchemeBuilderGrows},
		{"X-6", "the goroutineleak profile is harmless", "a goroutine that it called leaked, woken through a weak pointer, ends the process: `fatal error: bad g->status in ready`", TestLeakedAndWoken},
	}
}

// hangingServer answers nothing until the test is over, and gives its URL.
func hangingServer(t *testing.T) string {
	t.Helper()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(func() { close(release); server.Close() })
	return server.URL
}

// claimAsks sends a request and waits for the answer.
func claimAsks(t *testing.T, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	if response, err := transport.RoundTrip(request); err == nil {
		_ = response.Body.Close()
	}
}

// runInformer runs a healthy informer until the test is over.
func runInformer(t *testing.T) {
	t.Helper()
	informer := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc:  func(context.Context, metav1.ListOptions) (k8sruntime.Object, error) { return &corev1.PodList{}, nil },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}, &corev1.Pod{}, 0, toolscache.Indexers{})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() { cancel(); group.Wait() })
}

// spare is HeapInuse − HeapAlloc after a collection.
func spare() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse) - int64(m.HeapAlloc) //nolint:gosec // far from the limits
}

func TestHeapInuseIsFragmentation(t *testing.T) {
	const mib, total = 1 << 20, 64 << 20
	before := spare()
	leaked := make([][]byte, 0, total/mib)
	for range total / mib {
		leaked = append(leaked, make([]byte, mib))
	}
	if moved := spare() - before; moved > total/8 {
		t.Errorf("a leak of %d bytes moved it by %d", total, moved)
	}
	runtime.KeepAlive(leaked)

	const size = 512
	pieces := make([]*[size]byte, total/size)
	for i := range pieces {
		pieces[i] = new([size]byte)
	}
	before = spare()
	for i := range pieces {
		if i%64 != 0 {
			pieces[i] = nil
		}
	}
	if moved := spare() - before; moved < total/8 {
		t.Errorf("freeing most of %d bytes moved it by %d, want more than an eighth of that", total, moved)
	}
	runtime.KeepAlive(pieces)
}

func TestSlopeIsGarbage(t *testing.T) {
	live := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.Mallocs) - int64(m.Frees) //nolint:gosec // far from the limits
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const garbage = 200_000
	before := live()
	for range garbage {
		sink = new([64]byte)
	}
	sink = nil
	if grown := live() - before; grown < garbage {
		t.Errorf("%d objects of garbage moved it by %d", garbage, grown)
	}
	runtime.GC()
	runtime.GC()
	if grown := live() - before; grown > garbage/10 {
		t.Errorf("after a collection it is %d more, want about none", grown)
	}
}

// sink keeps the compiler from leaving an allocation out.
var sink any

func TestNoTimerMetric(t *testing.T) {
	for _, d := range metrics.All() {
		if strings.Contains(d.Name, "timer") && !strings.HasPrefix(d.Name, "/godebug/") {
			t.Errorf("%s: %s", d.Name, d.Description)
		}
	}
}

// collected reports whether an object goes within some collections.
func collected[T any](p weak.Pointer[T]) bool {
	for range 20 {
		runtime.GC()
		if p.Value() == nil {
			return true
		}
		time.Sleep(5 * time.Millisecond) // cleanups and finalizers run meanwhile
	}
	return false
}

// claimHolds parks between the uses of two objects.
func claimHolds(release <-chan struct{}, before, after *ring) {
	before.data[0]++
	<-release
	after.data[0]++
}

func TestParkedStackIsScanned(t *testing.T) {
	release := make(chan struct{})
	var group sync.WaitGroup
	before, after := func() (before, after weak.Pointer[ring]) {
		b, a := new(ring), new(ring)
		group.Add(1)
		go func(b, a *ring) { defer group.Done(); claimHolds(release, b, a) }(b, a)
		return weak.Make(b), weak.Make(a)
	}()
	dumpWith(t, 1, func(block string) bool {
		return strings.Contains(block, " [chan receive") && strings.Contains(block, "claimHolds(")
	})
	if !collected(before) {
		t.Error("what the goroutine has used for the last time is still there")
	}
	if collected(after) {
		t.Error("what the goroutine will use is gone")
	}
	close(release)
	group.Wait()
}

// ring is an object that may hold itself or another.
type ring struct {
	next *ring
	data [1024]byte
}

func TestCleanupOfItself(t *testing.T) {
	panics := func(register func(*ring)) (v any) {
		defer func() { v = recover() }()
		register(new(ring))
		return nil
	}
	for name, register := range map[string]func(*ring){
		"argument": func(r *ring) { runtime.AddCleanup(r, func(*ring) {}, r) },
		"function": func(r *ring) { runtime.AddCleanup(r, func(int) { r.data[0]++ }, 0) },
	} {
		if panics(register) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
	held := func() weak.Pointer[ring] {
		a := &ring{}
		a.next = &ring{next: a}
		runtime.AddCleanup(a, func(*ring) {}, a.next)
		return weak.Make(a)
	}()
	if collected(held) {
		t.Error("an object that its own cleanup reaches was freed")
	}
}

func TestCyclesAndCleanups(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func() *ring
		want bool
	}{
		{"finalizer, itself", func() *ring {
			r := &ring{}
			r.next = r
			runtime.SetFinalizer(r, func(*ring) {})
			return r
		}, true},
		{"finalizer, two", func() *ring {
			r := &ring{}
			r.next = &ring{next: r}
			runtime.SetFinalizer(r, func(*ring) {})
			return r
		}, false},
		{"cleanup, two", func() *ring {
			r := &ring{}
			r.next = &ring{next: r}
			runtime.AddCleanup(r, func(int) {}, 0)
			return r
		}, true},
	} {
		p := weak.Make(tt.make())
		if got := collected(p); got != tt.want {
			t.Errorf("%s: freed %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestSyncMapHolds(t *testing.T) {
	var strong sync.Map
	weakly := map[string]weak.Pointer[ring]{}
	put := func() (inMap weak.Pointer[ring]) {
		kept, dropped := new(ring), new(ring)
		strong.Store("a", kept)
		weakly["a"] = weak.Make(dropped)
		return weak.Make(kept)
	}
	inMap := put()
	if !collected(weakly["a"]) {
		t.Error("a weak pointer holds its object")
	}
	if collected(inMap) {
		t.Error("a sync.Map does not hold its value")
	}
	runtime.KeepAlive(&strong)
}

func TestNoQueueKey(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	declared := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				declared[f.Name.Name] = true
			}
		}
	}
	if declared["QueueKey"] || !declared["SetControllerReference"] {
		t.Errorf("declared: %v", declared)
	}
}

func TestUncomparableKeys(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "key.go", "package p\ntype CacheKey struct{ labels map[string]string }\nvar cache map[CacheKey]int\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = new(types.Config).Check("p", fset, []*ast.File{file}, nil); err == nil || !strings.Contains(err.Error(), "invalid map key type") {
		t.Errorf("got %v, want an invalid map key type", err)
	}
	cache := map[any]int{}
	func() {
		defer func() {
			if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "hash of unhashable type") {
				t.Errorf("recovered %v, want an unhashable type", v)
			}
		}()
		cache[struct{ labels map[string]string }{}]++
	}()
	if len(cache) != 0 {
		t.Errorf("%d entries, want none", len(cache))
	}
}

func TestDynamicClientHasNoClose(t *testing.T) {
	c, err := dynamic.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, closes := any(c).(io.Closer); closes {
		t.Errorf("%T has a Close", c)
	}
}

func TestSchemeBuilderGrows(t *testing.T) {
	builder := k8sruntime.SchemeBuilder{}
	scheme := k8sruntime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	known := len(scheme.AllKnownTypes())
	for range 10 {
		builder.Register(corev1.AddToScheme)
	}
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if len(builder) != 10 || len(scheme.AllKnownTypes()) != known {
		t.Errorf("%d functions and %d types, want 10 and %d", len(builder), len(scheme.AllKnownTypes()), known)
	}
}
