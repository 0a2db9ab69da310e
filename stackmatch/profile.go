package stackmatch

import (
	"fmt"
	"io"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// readProfile reads a profile that is not compressed, or no longer.
func readProfile(r io.Reader, o ReadOptions) (*Dump, error) {
	limited := r
	if o.MaxProfile > 0 {
		limited = io.LimitReader(r, o.MaxProfile+1)
	}
	data, err := io.ReadAll(limited)
	if err != nil {
		return nil, fmt.Errorf("stackmatch: reading: %w", err)
	}
	if o.MaxProfile > 0 && int64(len(data)) > o.MaxProfile {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, o.MaxProfile)
	}
	prof, err := profile.ParseUncompressed(data)
	if err != nil {
		return nil, fmt.Errorf("stackmatch: the profile is damaged: %w", err)
	}
	d := &Dump{Format: FormatProfile}
	if len(prof.SampleType) == 0 || !strings.HasPrefix(prof.SampleType[0].Type, "goroutine") {
		return nil, ErrOtherProfile
	}
	d.Leaks = prof.SampleType[0].Type == "goroutineleak"
	t := newTrie()
	var ts tallies
	var labels labelTable
	for _, s := range prof.Sample {
		var frames []frame.Frame
		for _, l := range s.Location {
			for _, line := range l.Line {
				if line.Function != nil {
					frames = append(frames, frame.Frame{Function: unescapeSymbol(line.Function.Name), File: line.Function.Filename, Line: int(line.Line)})
				}
			}
		}
		var set *labelSet
		if len(s.Label) > 0 {
			var list []Label
			for k, v := range s.Label {
				list = append(list, Label{Key: k, Value: v[0]})
			}
			sortLabels(list)
			set = labels.intern(list)
		}
		g := ts.get(t.stack(trimRuntime(frames)), set)
		g.count += int(s.Value[0])
		g.reasons = count(g.reasons, waitReason(frames), int(s.Value[0]))
		if d.Leaks {
			g.leaked = g.count
		}
		d.Total += int(s.Value[0])
	}
	d.groups = ts.groups()
	return d, nil
}
