package stackmatch

import "github.com/leakguard/leakguard/stackmatch/frame"

// The hash of a group is the same in every process, since people compare dumps of different pods. It takes eight bytes in
// a step. Nothing depends on it being free of collisions: groups
// are told apart by their contents, and tables fed with hostile input are seeded.
const (
	hashStart  = 14695981039346656037
	hashFactor = 0x9e3779b97f4a7c15
)

func hashString(h uint64, s string) uint64 {
	h ^= uint64(len(s)) * hashFactor
	for ; len(s) >= 8; s = s[8:] {
		word := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		h = mix(h, word)
	}
	last := uint64(0)
	for i := range len(s) {
		last |= uint64(s[i]) << (8 * i)
	}
	return mix(h, last)
}

func mix(h, v uint64) uint64 {
	h = (h ^ v) * hashFactor
	h ^= h >> 29
	h *= 0xff51afd7ed558ccd
	return h ^ h>>32
}

func stackHash(frames []frame.Frame) uint64 {
	h := uint64(hashStart)
	for i := range frames {
		h = mix(h, frameHash(&frames[i]))
	}
	return h
}

func frameHash(f *frame.Frame) uint64 {
	return mix(hashString(hashStart, f.Function), uint64(f.Line))
}

func labelsHash(h uint64, labels []Label) uint64 {
	for _, l := range labels {
		h = mix(hashString(h, l.Key), 1)
		h = mix(hashString(h, l.Value), 2)
	}
	return h
}
