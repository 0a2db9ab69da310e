package stackmatch

import "github.com/leakguard/leakguard/stackmatch/frame"

// The hash of a group is the same in every process, since people compare dumps of different pods. It is FNV-1a with a
// stronger step between the parts. Nothing depends on it being free of collisions: groups are told apart by their
// contents, and tables fed with hostile input are seeded.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hashString(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

func mix(h, v uint64) uint64 {
	h ^= v + 0x9e3779b97f4a7c15 + h<<6 + h>>2
	h *= 0xff51afd7ed558ccd
	return h ^ h>>32
}

func stackHash(frames []frame.Frame) uint64 {
	h := uint64(fnvOffset)
	for i := range frames {
		h = mix(h, frameHash(&frames[i]))
	}
	return h
}

func frameHash(f *frame.Frame) uint64 {
	return mix(hashString(fnvOffset, f.Function), uint64(f.Line))
}

func labelsHash(h uint64, labels []Label) uint64 {
	for _, l := range labels {
		h = mix(hashString(h, l.Key), 1)
		h = mix(hashString(h, l.Value), 2)
	}
	return h
}
