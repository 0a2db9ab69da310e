package memstats

import (
	"fmt"
	"time"

	"github.com/google/pprof/profile"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

func readHeapBinary(data []byte) (*Heap, error) {
	p, err := profile.ParseData(data)
	if err != nil {
		return nil, fmt.Errorf("%w: neither the text of debug=1 nor a binary profile: %w", ErrHeapProfile, err)
	}
	index := map[string]int{}
	for i, t := range p.SampleType {
		index[t.Type] = i + 1
	}
	if index["inuse_space"] == 0 || index["inuse_objects"] == 0 {
		return nil, fmt.Errorf("%w: it has no values inuse_objects and inuse_space: another kind of profile", ErrHeapProfile)
	}
	h := &Heap{Rate: max(1, p.Period)}
	if p.TimeNanos > 0 {
		h.Time = time.Unix(0, p.TimeNanos).UTC()
	}
	value := func(s *profile.Sample, name string) float64 {
		if i := index[name]; i > 0 && i <= len(s.Value) {
			return max(0, float64(s.Value[i-1]))
		}
		return 0
	}
	for _, s := range p.Sample {
		site := Site{
			Stack:        binaryStack(s),
			InuseObjects: value(s, "inuse_objects"), InuseBytes: value(s, "inuse_space"),
			AllocObjects: value(s, "alloc_objects"), AllocBytes: value(s, "alloc_space"),
		}
		if site.InuseObjects > 0 {
			site.Sampled = site.InuseObjects / scale(site.InuseBytes/site.InuseObjects, h.Rate)
		}
		h.Sites = append(h.Sites, site)
	}
	return h, nil
}

// binaryStack lists the frames, inlined ones included, leaf first.
func binaryStack(s *profile.Sample) []frame.Frame {
	stack := make([]frame.Frame, 0, len(s.Location))
	for _, location := range s.Location {
		for _, line := range location.Line {
			f := frame.Frame{Line: int(line.Line)}
			if line.Function != nil {
				f.Function, f.File = line.Function.Name, line.Function.Filename
			}
			stack = append(stack, f)
		}
	}
	return stack
}
