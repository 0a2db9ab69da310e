package stackmatch

import (
	"errors"
	"fmt"
	"io"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// ErrDamaged occurs when a profile is cut off, is no valid protocol buffer, or refers to parts that it does not have.
var ErrDamaged = errors.New("stackmatch: the profile is damaged")

// Fields of the messages in profile.proto of github.com/google/pprof.
const (
	profileSampleType = 1
	profileSample     = 2
	profileLocation   = 4
	profileFunction   = 5
	profileString     = 6

	valueTypeType = 1

	sampleLocation = 1
	sampleValue    = 2
	sampleLabel    = 3

	labelKey = 1
	labelStr = 2

	locationID   = 1
	locationLine = 4

	lineFunction = 1
	lineLine     = 2

	functionID   = 1
	functionName = 2
	functionFile = 4
)

// profileTables are the parts of one profile that its samples refer to. Their memory is used again for the next.
type profileTables struct {
	types     []uint64 // string numbers
	samples   [][]byte
	strings   [][]byte
	locations []location
	lines     []locationEntry
	functions []function
	frames    []frame.Frame
	hashes    []uint64 // of frames
	byID      map[uint64]int32
	functByID map[uint64]int32
}

type location struct {
	id       uint64
	from, to int // in lines, and in frames
}

type locationEntry struct {
	function uint64
	line     int
}

type function struct {
	id         uint64
	name, file uint64
}

func (t *profileTables) reset() {
	clear(t.samples)
	clear(t.strings)
	t.types, t.samples, t.strings = t.types[:0], t.samples[:0], t.strings[:0]
	t.locations, t.lines, t.functions = t.locations[:0], t.lines[:0], t.functions[:0]
	t.frames, t.hashes = t.frames[:0], t.hashes[:0]
	t.byID, t.functByID = nil, nil
}

// decode finds the parts; the samples are left for later, since the strings come last.
func (t *profileTables) decode(data []byte) error {
	t.reset()
	w := wire{data: data}
	for {
		f, ok := w.next()
		if !ok {
			break
		}
		switch f.number {
		case profileSampleType:
			t.types = append(t.types, firstVarint(&w, f.bytes, valueTypeType))
		case profileSample:
			t.samples = append(t.samples, f.bytes)
		case profileLocation:
			t.location(&w, f.bytes)
		case profileFunction:
			t.function(&w, f.bytes)
		case profileString:
			t.strings = append(t.strings, f.bytes)
		}
	}
	if w.bad {
		return fmt.Errorf("%w at byte %d", ErrDamaged, len(data)-len(w.data))
	}
	return nil
}

// firstVarint gives a number of a small message; 0 when it is missing, as in protocol buffers.
func firstVarint(outer *wire, data []byte, number uint64) uint64 {
	w := wire{data: data}
	for {
		f, ok := w.next()
		if !ok {
			outer.bad = outer.bad || w.bad
			return 0
		}
		if f.number == number {
			return f.value
		}
	}
}

func (t *profileTables) location(outer *wire, data []byte) {
	l := location{from: len(t.lines)}
	w := wire{data: data}
	for {
		f, ok := w.next()
		if !ok {
			break
		}
		switch f.number {
		case locationID:
			l.id = f.value
		case locationLine:
			t.lines = append(t.lines, entry(&w, f.bytes))
		}
	}
	outer.bad = outer.bad || w.bad
	l.to = len(t.lines)
	t.locations = append(t.locations, l)
}

func entry(outer *wire, data []byte) (e locationEntry) {
	w := wire{data: data}
	for {
		f, ok := w.next()
		if !ok {
			outer.bad = outer.bad || w.bad
			return e
		}
		switch f.number {
		case lineFunction:
			e.function = f.value
		case lineLine:
			e.line = int(min(f.value, 1<<31-1))
		}
	}
}

func (t *profileTables) function(outer *wire, data []byte) {
	var fn function
	w := wire{data: data}
	for {
		f, ok := w.next()
		if !ok {
			break
		}
		switch f.number {
		case functionID:
			fn.id = f.value
		case functionName:
			fn.name = f.value
		case functionFile:
			fn.file = f.value
		}
	}
	outer.bad = outer.bad || w.bad
	t.functions = append(t.functions, fn)
}

// resolve makes the frames of all locations, with names from the table of symbols.
func (t *profileTables) resolve(symbols *symbolTable) {
	for _, e := range t.lines {
		var f frame.Frame
		if fn := t.functionOf(e.function); fn != nil {
			f = frame.Frame{Function: symbols.function(t.text(fn.name)), File: symbols.file(t.text(fn.file)), Line: e.line}
		}
		t.frames = append(t.frames, f)
		t.hashes = append(t.hashes, frameHash(&f))
	}
}

// text gives a string of the table; empty for a number outside it.
func (t *profileTables) text(n uint64) []byte {
	if n >= uint64(len(t.strings)) {
		return nil
	}
	return t.strings[n]
}

// functionOf finds a function by id. Go numbers them from 1 in their order; other writers need a map.
func (t *profileTables) functionOf(id uint64) *function {
	if i := id - 1; i < uint64(len(t.functions)) && t.functions[i].id == id {
		return &t.functions[i]
	}
	if t.functByID == nil {
		t.functByID = map[uint64]int32{}
		for i := range t.functions {
			t.functByID[t.functions[i].id] = int32(i)
		}
	}
	if i, ok := t.functByID[id]; ok {
		return &t.functions[i]
	}
	return nil
}

func (t *profileTables) locationOf(id uint64) *location {
	if i := id - 1; i < uint64(len(t.locations)) && t.locations[i].id == id {
		return &t.locations[i]
	}
	if t.byID == nil {
		t.byID = map[uint64]int32{}
		for i := range t.locations {
			t.byID[t.locations[i].id] = int32(i)
		}
	}
	if i, ok := t.byID[id]; ok {
		return &t.locations[i]
	}
	return nil
}

// readProfile reads a profile that is not compressed, or no longer.
func readProfile(r io.Reader, o ReadOptions) ([]*Dump, error) {
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
	var p ProfileReader
	groups, err := p.read(nil, data)
	if err != nil && len(groups) == 0 {
		return nil, err
	}
	d := &Dump{Format: FormatProfile, Leaks: p.leaks, groups: groups}
	if err != nil {
		d.fail(0, err.Error())
	}
	for i := range groups {
		d.Total += groups[i].Count
	}
	sortGroups(groups)
	return []*Dump{d}, nil
}
