package stackmatch

import (
	"bytes"
	"hash/maphash"
)

// byteTable numbers distinct byte strings, and forgets them all without giving its memory back. It keeps the slices that
// it is given, so they must not change until the next reset. Its hash is seeded, since its keys come from outside.
type byteTable struct {
	seed  maphash.Seed
	slots []int32 // index into keys plus one; 0 is free
	keys  []byteKey
}

type byteKey struct {
	hash uint64
	key  []byte
}

func (t *byteTable) reset() {
	if t.slots == nil {
		t.seed = maphash.MakeSeed()
		t.slots = make([]int32, 256)
	}
	clear(t.slots)
	clear(t.keys)
	t.keys = t.keys[:0]
}

// number gives the number of a key, from 0 in the order of their first appearance; fresh tells that it is new.
func (t *byteTable) number(key []byte) (n int, fresh bool) {
	hash := maphash.Bytes(t.seed, key)
	if 2*len(t.keys) >= len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := t.slots[i]
		if slot == 0 {
			t.keys = append(t.keys, byteKey{hash, key})
			t.slots[i] = int32(len(t.keys))
			return len(t.keys) - 1, true
		}
		if k := &t.keys[slot-1]; k.hash == hash && bytes.Equal(k.key, key) {
			return int(slot - 1), false
		}
	}
}

func (t *byteTable) grow() {
	t.slots = make([]int32, 4*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n := range t.keys {
		i := t.keys[n].hash & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = int32(n + 1)
	}
}
