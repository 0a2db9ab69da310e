package frame

import (
	"slices"
	"strings"
)

// spawners are helpers that start a goroutine for somebody else: their own frames and their name as a creator say
// nothing about who did. A function of the list stands for its closures too.
var spawners = [...]string{
	"sync.(*WaitGroup).Go",
	"k8s.io/apimachinery/pkg/util/wait.(*Group).Start",
	"k8s.io/apimachinery/pkg/util/wait.(*Group).StartWithChannel",
	"k8s.io/apimachinery/pkg/util/wait.(*Group).StartWithContext",
	"golang.org/x/sync/errgroup.(*Group).Go",
	"golang.org/x/sync/errgroup.(*Group).TryGo",
	"golang.org/x/sync/errgroup.(*Group).add",
	"golang.org/x/sync/singleflight.(*Group).DoChan",
	"github.com/oklog/run.(*Group).Run",
	"github.com/sourcegraph/conc.(*WaitGroup).Go",
	"go.uber.org/atomic.(*WaitGroup).Go",
}

// inlinedSpawners are how closures of spawn helpers are called that were inlined into their caller:
// "cache.(*controller).Run.(*Group).StartWithChannel.func2".
var inlinedSpawners = [...]string{
	".(*Group).StartWithChannel.func", ".(*Group).StartWithContext.func", ".(*WaitGroup).Go.func", ".(*Group).Go.func",
}

// IsSpawner reports whether a function is a helper that starts goroutines for others, such as sync.(*WaitGroup).Go, or a
// closure of one. Vendored copies count.
func IsSpawner(function string) bool {
	function = withoutVendor(function)
	for _, s := range spawners {
		if rest, ok := strings.CutPrefix(function, s); ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	for _, s := range inlinedSpawners {
		if strings.Contains(function, s) {
			return true
		}
	}
	return false
}

// Root gives the function that a goroutine was started for: the outermost frame of its stack, leaf first, that is neither
// a spawn helper (see [IsSpawner]) nor the runtime's. For
//
//	k8s.io/client-go/tools/cache.(*processorListener).pop
//	k8s.io/apimachinery/pkg/util/wait.(*Group).Start.func1
//
// it is pop. It is zero for a stack without such a frame.
func Root(stack []Frame) Frame {
	for _, f := range slices.Backward(stack) {
		if !IsSpawner(f.Function) && f.Function != "runtime.goexit" && f.Function != "runtime.main" {
			return f
		}
	}
	return Frame{}
}
