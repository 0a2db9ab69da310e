package stackmatch

import "strings"

// parkTable finds out what the groups of a debug=1 dump wait for whose leaf frames, the runtime's, are not printed.
// Their addresses are: below runtime.gopark stands runtime.selectgo alone, or runtime.chanrecv or chansend with the
// small function that the compiler calls for it. Which of these two it is tell functions that are known to receive.
type parkTable struct{ parks []park }

type park struct {
	tally    *tally
	caller   string // of the runtime
	gopark   uint64
	operator uint64 // the address in chanrecv, chansend or selectgo
	hidden   int
}

// receivers are functions of libraries that every operator has, which receive from a channel and do nothing else that blocks.
var receivers = []string{
	"sigs.k8s.io/controller-runtime/pkg/manager/signals.SetupSignalHandler.func1",
	"sigs.k8s.io/controller-runtime/pkg/manager.(*runnableGroup).reconcile",
	"k8s.io/client-go/tools/cache.(*processorListener).run",
	"k8s.io/client-go/tools/cache.(*controller).Run.func1",
	"k8s.io/client-go/tools/cache.(*controller).RunWithContext.func1",
	"k8s.io/client-go/util/workqueue.(*Type).updateUnfinishedWorkLoop",
	"k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop",
	"k8s.io/apimachinery/pkg/watch.(*Broadcaster).loop",
	"k8s.io/client-go/tools/record.(*eventBroadcasterImpl).StartEventWatcher.func1",
	"testing.(*T).Run",
	"testing.runTests.func1",
}

func (p *parkTable) add(t *tally, pcs []uint64, hidden int, caller string) {
	if hidden < 2 || hidden > 3 || hidden > len(pcs) {
		return
	}
	p.parks = append(p.parks, park{tally: t, caller: caller, gopark: pcs[0], operator: pcs[1], hidden: hidden})
}

// resolve gives the groups their wait reasons.
func (p *parkTable) resolve() {
	gopark := p.commonest()
	receive := map[uint64]bool{}
	for _, k := range p.parks {
		if k.hidden == 3 && isReceiver(k.caller) {
			receive[k.operator] = true
		}
	}
	for _, k := range p.parks {
		switch {
		case k.gopark != gopark:
		case k.hidden == 2:
			k.tally.reasons = count(k.tally.reasons, "select", k.tally.count)
		case receive[k.operator]:
			k.tally.reasons = count(k.tally.reasons, "chan receive", k.tally.count)
		}
	}
}

// commonest gives the first address of most stacks, which is runtime.gopark's.
func (p *parkTable) commonest() uint64 {
	seen := map[uint64]int{}
	var best uint64
	for _, k := range p.parks {
		if seen[k.gopark]++; seen[k.gopark] > seen[best] {
			best = k.gopark
		}
	}
	return best
}

func isReceiver(function string) bool {
	for _, r := range receivers {
		if strings.HasSuffix(function, r) {
			return true
		}
	}
	return false
}
