package leakguard

import (
	"bytes"
	"runtime/pprof"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

// Bounds of the heap profiles that are kept, compressed as the runtime writes them, to be read when the heap grows.
const (
	maxHeaps     = 8
	maxHeapBytes = 1 << 20 // one that is larger is not kept: a site that grows shows in small ones too
)

// heapKeeper keeps heap profiles from the start until now, evenly spread.
type heapKeeper struct {
	timing   timing
	profiles []keptHeap
	buffer   bytes.Buffer
}

type keptHeap struct {
	at   time.Time
	data []byte
}

// due reports whether it is time for another profile: every five minutes or what the
// budget makes of them, and each tick while the heap is known to grow
// and too few are kept to name a site.
func (k *heapKeeper) due(now time.Time, every time.Duration, wanted bool) bool {
	if len(k.profiles) == 0 {
		return true
	}
	last := k.profiles[len(k.profiles)-1].at
	if wanted && len(k.profiles) < 4 {
		return now.Sub(last) >= k.timing.grace
	}
	return now.Sub(last) >= every
}

// take keeps the heap profile of now: what the last garbage collection found alive, without asking for one. When there
// are too many, every second one goes, but the oldest and the newest stay. It gives the size of what was read.
func (k *heapKeeper) take(now time.Time) (read int, err error) {
	k.buffer.Reset()
	if err := pprof.Lookup("heap").WriteTo(&k.buffer, 0); err != nil {
		return 0, err
	}
	if k.buffer.Len() > maxHeapBytes {
		return k.buffer.Len(), nil
	}
	if len(k.profiles) == maxHeaps {
		kept := k.profiles[:0]
		for i, p := range k.profiles {
			if i%2 == 0 || i == maxHeaps-1 {
				kept = append(kept, p)
			}
		}
		k.profiles = kept
	}
	k.profiles = append(k.profiles, keptHeap{at: now, data: bytes.Clone(k.buffer.Bytes())})
	return k.buffer.Len(), nil
}

// heaps reads the profiles that are kept, in time order; one that cannot be read is left out.
func (k *heapKeeper) heaps() []*memstats.Heap {
	list := make([]*memstats.Heap, 0, len(k.profiles))
	for _, p := range k.profiles {
		h, err := memstats.ReadHeap(p.data)
		if err != nil {
			continue
		}
		h.Time = p.at
		list = append(list, h)
	}
	return list
}

// newest is the last profile, nil when none is kept.
func (k *heapKeeper) newest() []byte {
	if len(k.profiles) == 0 {
		return nil
	}
	return k.profiles[len(k.profiles)-1].data
}
