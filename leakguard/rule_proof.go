package leakguard

import (
	"fmt"
	"time"

	"github.com/leakguard/leakguard/probes"
	"github.com/leakguard/leakguard/stackmatch/frame"
)

// ruleProof is rule P: the runtime itself has proved that the goroutines can never run again. The marks are not sticky,
// so they are remembered, and a single mark is believed at the second time only.
const ruleProof = "unreachable"

// maxProofs bounds the places that are remembered as proved.
const maxProofs = 512

// proofs remembers what the runtime's leak profile has marked.
type proofs struct {
	byKey   map[placeKey]*proof
	dropped uint64
}

// proof is the marks of one place.
type proof struct {
	signal signal
	cycles int // leak profiles that had it
	seen   time.Time
}

// judge takes in a leak profile, if there is one, and gives the signals of all that is proved.
func (p *proofs) judge(ev *Evidence, main string, emit func(signal)) {
	if ev.Proof != nil {
		p.take(ev, main)
	}
	for _, x := range p.byKey {
		emit(x.signal)
	}
}

func (p *proofs) take(ev *Evidence, main string) {
	for i := range ev.Proof {
		g := &ev.Proof[i]
		controller, _ := g.Label(probes.LabelController)
		key := placeKey{controller, frame.Root(g.Stack).Function}
		x := p.byKey[key]
		if x == nil {
			if len(p.byKey) >= maxProofs {
				p.dropped++
				continue
			}
			x = &proof{signal: signal{
				rule: ruleProof, category: "goroutine-unreachable", tier: TierProven, controller: controller, since: ev.At,
				advice: "nothing that lives can reach what it waits for: close the channel by its sender, or give the wait a context",
			}}
			p.byKey[key] = x
		}
		if !x.seen.Equal(ev.At) {
			x.seen, x.signal.count = ev.At, 0
			x.cycles++
		}
		x.signal.culprit, x.signal.pattern = blame(g.Stack, frame.Frame{}, main)
		x.signal.count += int64(g.Count)
		x.signal.waitReason, x.signal.stack, x.signal.sample = g.WaitReason, g.Stack, nil
	}
	for key, x := range p.byKey {
		if !x.seen.Equal(ev.At) {
			delete(p.byKey, key)
			continue
		}
		x.signal.level = levelPending
		if x.cycles >= 2 {
			x.signal.level = levelFiring
		}
		x.signal.reason = fmt.Sprintf("the runtime proved %d goroutines unreachable, in %d leak profiles", x.signal.count, x.cycles)
	}
}
