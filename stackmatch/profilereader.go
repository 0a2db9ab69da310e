package stackmatch

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// ProfileReader reads goroutine profiles of one program again and again. What it has seen once, stacks, names and labels,
// it keeps for the next profile, so that reading a profile like the one before allocates next to nothing. The zero value
// is ready to use. It must not be used concurrently; the groups that it gives may be.
//
// It keeps what the last profile had and at most as much again that is gone, and forgets the rest.
type ProfileReader struct {
	// Main is the path of the main module, for the culprits; "" for unknown. It must not change after the first call.
	Main string
	// MaxProfile is the largest size of a profile in bytes after decompression; 0 means 256 MiB.
	MaxProfile int64

	source bytes.Reader
	zip    *gzip.Reader
	plain  bytes.Buffer
	tables profileTables

	symbols symbolTable
	trie    *trie
	labels  map[string]*labelSet
	age     uint64

	stackKeys byteTable // the location ids of a sample, as encoded
	stacks    []sampleStack
	labelKeys byteTable
	sets      []*labelSet
	pairs     []byte // keys of labelKeys
	content   []byte
	groupOf   map[[2]int32]int32
	votes     []int // for the wait reason of each group
	frames    []frame.Frame
	leaks     bool
	bad       int // references to parts that are missing
}

// sampleStack is a distinct stack of one profile. Two of them can be one when the runtime's frames are left out.
type sampleStack struct {
	number int32 // of stack, the first sampleStack's with it
	stack  *stack
	reason string
}

// Read appends the groups of a goroutine profile, compressed or not, to dst, in the order of the profile. Groups have no
// Members, CreatedBy, Oldest and Median, which profiles do not hold; WaitReason is read from the leaf frames.
//
// Errors are [ErrOtherProfile], [ErrTooLarge], [ErrDamaged] and those of gzip. With ErrDamaged there may be groups all the
// same: those whose parts were there.
func (p *ProfileReader) Read(dst []Group, data []byte) ([]Group, error) {
	if isGzip(data) {
		var err error
		if data, err = p.unzip(data); err != nil {
			return dst, err
		}
	}
	return p.read(dst, data)
}

func (p *ProfileReader) unzip(data []byte) ([]byte, error) {
	limit := p.MaxProfile
	if limit <= 0 {
		limit = 256 << 20
	}
	p.source.Reset(data)
	var err error
	if p.zip == nil {
		p.zip, err = gzip.NewReader(&p.source)
	} else {
		err = p.zip.Reset(&p.source)
	}
	if err != nil {
		return nil, fmt.Errorf("stackmatch: decompressing: %w", err)
	}
	p.plain.Reset()
	n, err := p.plain.ReadFrom(io.LimitReader(p.zip, limit+1))
	if err != nil {
		return nil, fmt.Errorf("stackmatch: decompressing: %w", err)
	}
	if n > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
	}
	return p.plain.Bytes(), nil
}

func (p *ProfileReader) read(dst []Group, data []byte) ([]Group, error) {
	if err := p.tables.decode(data); err != nil {
		return dst, err
	}
	if err := p.kind(); err != nil {
		return dst, err
	}
	p.begin()
	p.tables.resolve(&p.symbols)
	first := len(dst)
	for _, s := range p.tables.samples {
		dst = p.sample(dst, first, s)
	}
	p.forget()
	if p.bad > 0 {
		return dst, fmt.Errorf("%w: %d references to parts that it does not have", ErrDamaged, p.bad)
	}
	return dst, nil
}

// kind tells a goroutine profile from others by its sample type.
func (p *ProfileReader) kind() error {
	p.leaks = false
	if len(p.tables.types) == 0 {
		return ErrOtherProfile
	}
	switch kind := p.tables.text(p.tables.types[0]); string(kind) {
	case "goroutine", "goroutines":
	case "goroutineleak":
		p.leaks = true
	default:
		return fmt.Errorf("%w: its samples are of type %q", ErrOtherProfile, kind)
	}
	return nil
}

func (p *ProfileReader) begin() {
	if p.trie == nil {
		p.trie = newTrie()
		p.labels = map[string]*labelSet{}
		p.groupOf = map[[2]int32]int32{}
	}
	p.age++
	p.stackKeys.reset()
	p.labelKeys.reset()
	p.stacks, p.sets, p.pairs, p.votes = p.stacks[:0], p.sets[:0], p.pairs[:0], p.votes[:0]
	clear(p.groupOf)
	p.bad = 0
}

// sample adds one sample to the groups of dst from first on.
func (p *ProfileReader) sample(dst []Group, first int, data []byte) []Group {
	var locations []byte
	var n uint64
	counted := false
	from := len(p.pairs)
	w := wire{data: data}
	for {
		f, ok := w.next()
		if !ok {
			break
		}
		switch f.number {
		case sampleLocation:
			locations = joinVarints(locations, f)
		case sampleValue: // in one field, or in one for each value
			if !counted {
				n, counted = firstValue(f)
			}
		case sampleLabel:
			p.label(f.bytes)
		}
	}
	if w.bad {
		p.bad++
		return dst
	}
	if n == 0 || n > maxCount {
		return dst
	}
	s := p.stackOf(locations)
	key := [2]int32{s.number, p.labelsOf(from)}
	i, ok := p.groupOf[key]
	if !ok {
		i = int32(len(dst) - first)
		p.groupOf[key] = i
		dst = append(dst, p.group(s, key[1]))
		p.votes = append(p.votes, 0)
	}
	g := &dst[first+int(i)]
	g.Count = int(min(uint64(g.Count)+n, maxCount))
	if p.leaks {
		g.Leaked = g.Count
	}
	p.vote(g, int(i), s.reason, int(n))
	return dst
}

// vote keeps the wait reason of most goroutines. Those that run have none, and do not count.
func (p *ProfileReader) vote(g *Group, i int, reason string, n int) {
	switch {
	case reason == "":
	case reason == g.WaitReason:
		p.votes[i] += n
	case n > p.votes[i]:
		g.WaitReason, p.votes[i] = reason, n
	}
}

// joinVarints adds a field of numbers, packed or single, to those before. Go packs them all in one field, which is then
// not copied.
func joinVarints(before []byte, f field) []byte {
	if f.bytes == nil {
		return binary.AppendUvarint(slices.Clip(before), f.value)
	}
	if before == nil {
		return f.bytes
	}
	return append(slices.Clip(before), f.bytes...)
}

// firstValue gives the first value of a field; ok is false for a packed field without any.
func firstValue(f field) (v uint64, ok bool) {
	if f.bytes == nil {
		return f.value, true
	}
	w := wire{data: f.bytes}
	return w.varint(), len(f.bytes) > 0
}

// label notes the string numbers of a label; those with a number as their value are left out.
func (p *ProfileReader) label(data []byte) {
	var key, str uint64
	w := wire{data: data}
	for {
		f, ok := w.next()
		if !ok {
			break
		}
		switch f.number {
		case labelKey:
			key = f.value
		case labelStr:
			str = f.value
		}
	}
	if w.bad || key > math.MaxUint32 || str > math.MaxUint32 {
		p.bad++
		return
	}
	if key != 0 && str != 0 {
		p.pairs = binary.LittleEndian.AppendUint32(p.pairs, uint32(key))
		p.pairs = binary.LittleEndian.AppendUint32(p.pairs, uint32(str))
	}
}

// stackOf gives the stack with these encoded location ids.
func (p *ProfileReader) stackOf(locations []byte) sampleStack {
	n, fresh := p.stackKeys.number(locations)
	if !fresh {
		return p.stacks[n]
	}
	frames := p.frames[:0]
	w := wire{data: locations}
	for len(w.data) > 0 {
		l := p.tables.locationOf(w.varint())
		if l == nil {
			p.bad++
			continue
		}
		if room := maxFrames - len(frames); room >= l.to-l.from {
			frames = append(frames, p.tables.frames[l.from:l.to]...)
		}
	}
	p.frames = frames
	s := sampleStack{number: int32(n), reason: waitReason(frames)}
	s.stack = p.trie.stack(trimRuntime(frames))
	if s.stack.age == p.age {
		s.number = s.stack.number
	} else {
		s.stack.age, s.stack.number = p.age, s.number
		p.blame(s.stack)
	}
	p.stacks = append(p.stacks, s)
	return s
}

// blame fills in the frames to blame once for each stack.
func (p *ProfileReader) blame(s *stack) {
	if s.blamed {
		return
	}
	g := Group{Stack: s.frames}
	g.blame(p.Main)
	s.blamed, s.root, s.culprit, s.origin = true, g.Root, g.Culprit, g.CulpritOrigin
}

func (p *ProfileReader) group(s sampleStack, labels int32) Group {
	g := Group{
		ID: s.stack.hash, Stack: s.stack.frames, Root: s.stack.root, Culprit: s.stack.culprit, CulpritOrigin: s.stack.origin,
	}
	if labels >= 0 {
		set := p.sets[labels]
		g.ID, g.Labels = mix(g.ID, set.hash), set.labels
	}
	return g
}

// labelsOf gives the number of the set of labels noted since from; -1 for none.
func (p *ProfileReader) labelsOf(from int) int32 {
	key := p.pairs[from:]
	if len(key) == 0 {
		return -1
	}
	n, fresh := p.labelKeys.number(key)
	if fresh {
		p.sets = append(p.sets, p.labelSet(key))
	} else {
		p.pairs = p.pairs[:from]
	}
	return int32(n)
}

// labelSet gives the one copy of a set of labels.
func (p *ProfileReader) labelSet(pairs []byte) *labelSet {
	text := p.content[:0]
	for i := 0; i < len(pairs); i += 8 {
		for _, n := range [2]uint32{binary.LittleEndian.Uint32(pairs[i:]), binary.LittleEndian.Uint32(pairs[i+4:])} {
			word := p.tables.text(uint64(n))
			text = binary.AppendUvarint(text, uint64(len(word)))
			text = append(text, word...)
		}
	}
	p.content = text
	set, ok := p.labels[string(text)]
	if !ok {
		kept := string(text)
		set = newLabelSet(kept, len(pairs)/8)
		p.labels[kept] = set
	}
	set.age = p.age
	return set
}

// newLabelSet makes the set of labels that labelSet has encoded; the strings are parts of text.
func newLabelSet(text string, n int) *labelSet {
	labels := make([]Label, 0, n)
	next := func() (word string) {
		size, i := uint64(0), 0
		for shift := 0; i < len(text); shift += 7 {
			c := text[i]
			i++
			if size |= uint64(c&0x7f) << shift; c < 0x80 {
				break
			}
		}
		word, text = text[i:i+int(size)], text[i+int(size):]
		return word
	}
	for text != "" {
		key := next()
		labels = append(labels, Label{Key: key, Value: next()})
	}
	sortLabels(labels)
	return &labelSet{labels: labels, hash: labelsHash(hashStart, labels)}
}

// Slack is how many label sets, stacks and names beyond twice those in use are kept.
const slack = 1024

// forget drops what was not in the last profiles once it is more than what was.
func (p *ProfileReader) forget() {
	if len(p.labels) > 2*len(p.sets)+slack {
		maps.DeleteFunc(p.labels, func(_ string, set *labelSet) bool { return set.age != p.age })
	}
	if len(p.trie.stacks) > 2*len(p.stacks)+slack || len(p.symbols.functions) > 2*len(p.tables.functions)+slack {
		p.trie, p.symbols = newTrie(), symbolTable{}
	}
}
