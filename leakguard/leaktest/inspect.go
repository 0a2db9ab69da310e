package leaktest

import (
	"bytes"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"sync"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// mainModule is the path of the program's main module, for the culprits.
var mainModule = sync.OnceValue(frame.MainModule)

// buffers keeps the text of profiles for the next check.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// profileGroups hands f the groups of the goroutine profile, with labels. It takes the profile as text: of the few
// goroutines of a test that is five times cheaper than the compressed form, whose compressor alone takes a megabyte.
func profileGroups(f func(groups []stackmatch.Group)) error {
	b, ok := buffers.Get().(*bytes.Buffer)
	if !ok {
		b = new(bytes.Buffer)
	}
	defer buffers.Put(b)
	b.Reset()
	if err := pprof.Lookup("goroutine").WriteTo(b, 1); err != nil {
		return fmt.Errorf("leaktest: %w", err)
	}
	d, err := stackmatch.Read(b, stackmatch.ReadOptions{GroupsOnly: true})
	if err != nil {
		return fmt.Errorf("leaktest: %w", err)
	}
	f(d.GroupBy(mainModule()))
	return nil
}

// maxDump bounds a text dump, in bytes.
const maxDump = 256 << 20

// traceback guards the setting that has dumps print labels.
var traceback sync.Mutex

// dumpGoroutines gives all goroutines with their labels, the caller's first. It stops the world.
//
// Dumps print labels only with a GODEBUG setting (tracebacklabels; default only from Go 1.27, and there only for main
// modules of that version). The runtime takes it from the environment at once, so it is set for the time of the dump.
func dumpGoroutines() ([]stackmatch.Goroutine, error) {
	text, truncated := dumpText()
	d, err := stackmatch.Read(bytes.NewReader(text), stackmatch.ReadOptions{})
	if err != nil {
		return nil, fmt.Errorf("leaktest: %w", err)
	}
	if truncated {
		return d.Goroutines, fmt.Errorf("leaktest: the dump of all goroutines is larger than %d bytes", maxDump)
	}
	return d.Goroutines, nil
}

func dumpText() (text []byte, truncated bool) {
	const name, setting = "GODEBUG", "tracebacklabels=1"
	traceback.Lock()
	defer traceback.Unlock()
	before, set := os.LookupEnv(name)
	if strings.HasSuffix(before, setting) {
		return stackmatch.CaptureText(maxDump)
	}
	during := setting
	if before != "" {
		during = before + "," + setting
	}
	if err := os.Setenv(name, during); err != nil {
		return stackmatch.CaptureText(maxDump) // without labels; creators still tell a part
	}
	defer func() {
		if os.Getenv(name) != during {
			return // a test has set its own meanwhile
		}
		if set {
			_ = os.Setenv(name, before) // what could be read can be set
			return
		}
		_ = os.Unsetenv(name) // fails for no valid name
	}()
	return stackmatch.CaptureText(maxDump)
}

// groupOf gives one goroutine as a group, the form that rules look at.
func groupOf(g *stackmatch.Goroutine) stackmatch.Group {
	group := stackmatch.Group{
		Stack: g.Stack, Labels: g.Labels, CreatedBy: g.CreatedBy, Root: frame.Root(g.Stack),
		WaitReason: g.WaitReason, Count: 1, Oldest: g.Wait, Median: g.Wait,
	}
	creator := g.CreatedBy
	if frame.IsSpawner(creator.Function) {
		creator = frame.Frame{}
	}
	if f, origin, ok := frame.Culprit(g.Stack, creator, mainModule()); ok {
		group.Culprit, group.CulpritOrigin = f, origin
	}
	if g.Leaked {
		group.Leaked = 1
	}
	return group
}
