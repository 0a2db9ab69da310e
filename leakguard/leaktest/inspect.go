package leaktest

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// mainModule is the path of the program's main module, for the culprits.
var mainModule = sync.OnceValue(frame.MainModule)

// profiler reads the labelled profile of this process.
type profiler struct {
	buf    bytes.Buffer
	reader stackmatch.ProfileReader
	groups []stackmatch.Group
}

// profilers keeps readers, which are expensive to make anew, for the next check.
var profilers = sync.Pool{New: func() any { return new(profiler) }}

// profileGroups hands f the groups of the goroutine profile, which are valid until f returns.
func profileGroups(f func(groups []stackmatch.Group)) error {
	p, ok := profilers.Get().(*profiler)
	if !ok {
		p = new(profiler)
	}
	defer profilers.Put(p)
	p.buf.Reset()
	if err := stackmatch.CaptureProfile(&p.buf); err != nil {
		return fmt.Errorf("leaktest: %w", err)
	}
	var err error
	p.groups, err = p.reader.Read(p.groups[:0], p.buf.Bytes())
	if err != nil {
		return fmt.Errorf("leaktest: %w", err)
	}
	f(p.groups)
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
