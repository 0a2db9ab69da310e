package stackmatch

import "bytes"

// follow reads on in the buffer as long as the goroutine's frames are those of one seen before, which most are: then a
// frame costs two comparisons of bytes and two searches for the line's end. What is not so it leaves to the slow path.
func (p *textReader) follow(l *lineReader) {
	if !p.open || p.skip || p.hasPending {
		return
	}
	at := p.at
	for {
		b := l.buf[l.start:l.end]
		n := at.likely
		if n == nil || n.kind == callNode && !startsWith(b, n.function) {
			n = p.guessCall(at, b)
		}
		n, size := p.match(b, n)
		if size == 0 {
			p.at = at
			return
		}
		if at.likely != n {
			at.likely = n
		}
		l.start += size
		l.line += 2
		at = n
	}
}

// match gives how many bytes the two lines of a frame or creator take if they are those of n, or of one like it.
func (p *textReader) match(b []byte, n *node) (*node, int) {
	switch {
	case n == nil:
	case n.kind == callNode:
		return matchCall(b, n)
	case n.kind == creatorNode:
		return p.matchCreator(b, n)
	}
	return nil, 0
}

func startsWith(b []byte, s string) bool { return len(b) > len(s) && string(b[:len(s)]) == s }

// guessCall finds the frame seen before that begins at b.
func (p *textReader) guessCall(at *node, b []byte) *node {
	end := bytes.IndexByte(b, '\n')
	if end < 3 || b[0] == '\t' || b[end-1] != ')' {
		return nil
	}
	name, ok := functionPart(b[:end])
	if !ok {
		return nil
	}
	return p.trie.guess(at, callNode, name)
}

// matchCall gives how many bytes the two lines of a frame take if they are those of n, or of one of the same function
// and another line, which it also gives. It gives 0 if they are not.
func matchCall(b []byte, n *node) (*node, int) {
	f := len(n.function)
	end := bytes.IndexByte(b[f:], '\n')
	if end < 1 || b[f+end-1] != ')' {
		return nil, 0
	}
	at := f + end + 1
	n, size := matchPosition(b[at:], n)
	if size == 0 {
		return nil, 0
	}
	return n, at + size
}

// matchPosition finds the node whose line "\t/src/app.go:12 +0x1b\n" begins b, and that line's length, else 0.
func matchPosition(b []byte, n *node) (*node, int) {
	if len(b) == 0 || b[0] != '\t' {
		return nil, 0
	}
	for first := n; n != nil; n = n.next {
		k := 1 + len(n.position)
		if !n.isAt(b[1:]) || n != first && !n.isLike(first) {
			continue
		}
		end := offsetEnd(b[k:])
		if end < 0 {
			return nil, 0
		}
		return n, k + end + 1
	}
	return nil, 0
}

// offsetEnd gives where the line ends of which rest begins with what follows a position, as " +0x1b" does; -1 if it does not end, or
// [hasPlace]. So few bytes are faster looked at one by one.
func offsetEnd(rest []byte) int {
	for i, c := range rest {
		switch c {
		case '\n':
			return i
		case ':':
			return -1
		}
	}
	return -1
}

// isAt reports whether text begins with the position of n, which must be known.
func (n *node) isAt(text []byte) bool {
	k := len(n.position)
	return k > 0 && len(text) >= k && string(text[:k]) == n.position && (len(text) == k || text[k] == ' ' || text[k] == '\n')
}

// isLike reports whether two nodes differ in the position only.
func (n *node) isLike(o *node) bool {
	return n.parent == o.parent && n.kind == o.kind && n.function == o.function
}

// matchCreator does for a creator what matchCall does for a frame.
func (p *textReader) matchCreator(b []byte, n *node) (*node, int) {
	name := len(createdWord)
	if len(b) <= name+len(n.function) || !bytes.HasPrefix(b, createdWord) || !startsWith(b[name:], n.function) {
		return nil, 0
	}
	at := name + len(n.function)
	id := uint64(0)
	if b[at] != '\n' {
		after, ok := bytes.CutPrefix(b[at:], inGoroutineWord)
		end := bytes.IndexByte(after, '\n')
		if !ok || end < 0 {
			return nil, 0
		}
		if id, ok = parseUint(after[:end]); !ok {
			return nil, 0
		}
		at += len(inGoroutineWord) + end
	}
	n, size := matchPosition(b[at+1:], n)
	if size == 0 {
		return nil, 0
	}
	if id != 0 {
		p.current.CreatorID = id
	}
	return n, at + 1 + size
}
