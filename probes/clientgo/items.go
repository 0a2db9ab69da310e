package clientgo

import (
	"runtime"
	"sync"
	"time"
)

// When an item that is not done is lost and not just slow.
const (
	// lostGraces is how many times the grace it must be in work.
	lostGraces = 30
	// lostLives is how many times the longest of those that were done.
	lostLives = 3
	// itemsLost is the least number of lost items that is a leak when it climbs.
	itemsLost = 10
)

const (
	// maxItems bounds the items of a queue that are followed.
	maxItems = 16_384
	// maxHolders bounds how often in a second a queue asks for the number of a goroutine, which takes 10 to 30 µs.
	maxHolders = 200
)

// items follows the items of a queue that were got and are not done.
type items[T comparable] struct {
	mu      sync.Mutex
	inWork  int
	open    map[T]*item
	latest  map[uint64]T  // of each goroutine, the item that it got last, as long as that is open
	longest time.Duration // that one was in work
	second  int64         // in which asked was counted
	asked   int
}

// item is one that is in work.
type item struct {
	since  time.Time
	holder uint64 // the goroutine that got it; 0 for unknown
	moved  bool   // which has got another one since
}

// got notes that the calling goroutine has got an item. If the one before is not done yet, it is in other hands now, or in none.
func (x *items[T]) got(key T) {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.inWork++
	if x.open == nil {
		x.open, x.latest = map[T]*item{}, map[uint64]T{}
	}
	i := &item{since: now, holder: x.holderLocked(now)}
	if before, ok := x.latest[i.holder]; ok {
		x.open[before].moved = true
		delete(x.latest, i.holder)
	}
	if _, twice := x.open[key]; twice || len(x.open) >= maxItems {
		return
	}
	x.open[key] = i
	if i.holder != 0 {
		x.latest[i.holder] = key
	}
}

// holderLocked gives the number of the calling goroutine, 0 when it was asked for too often.
func (x *items[T]) holderLocked(now time.Time) uint64 {
	if second := now.Unix(); second != x.second {
		x.second, x.asked = second, 0
	}
	if x.asked++; x.asked > maxHolders {
		return 0
	}
	return goroutineID()
}

// done notes the end of an item.
func (x *items[T]) done(key T) {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	i := x.open[key]
	if i == nil {
		x.inWork = max(x.inWork-1, len(x.open)) // one that found no room, or is not in work at all
		return
	}
	x.inWork--
	x.longest = max(x.longest, now.Sub(i.since))
	delete(x.open, key)
	if latest, ok := x.latest[i.holder]; ok && latest == key {
		delete(x.latest, i.holder)
	}
}

// count gives how many items are in work, and how many of those are lost: whoever got one has gone on to another, and it has
// been in work for many graces and far longer than any that was done. Slow work in a worker's own hands is never lost.
func (x *items[T]) count(grace time.Duration) (inWork, lost int64) {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	least := max(lostGraces*max(grace, 0), lostLives*x.longest)
	for _, i := range x.open {
		if i.moved && now.Sub(i.since) >= least {
			lost++
		}
	}
	return int64(x.inWork), lost
}

// goroutineID is the number of the calling goroutine, as its stack trace has it: the runtime tells it nowhere else.
func goroutineID() (id uint64) {
	const prefix = "goroutine "
	var buf [32]byte
	n := runtime.Stack(buf[:], false) //nolint:forbidigo // the number alone, into 32 bytes
	for _, c := range buf[min(len(prefix), n):n] {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + uint64(c-'0')
	}
	return id
}
