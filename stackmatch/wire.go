package stackmatch

// wire reads protocol buffer fields from data one after the other. It never copies.
type wire struct {
	data []byte
	bad  bool // the data is damaged
}

// field is one field of a message.
type field struct {
	number uint64
	value  uint64 // of a number
	bytes  []byte // of a length-delimited field, else nil
}

// Wire types of protocol buffers.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// next gives the next field; ok is false at the end and when the data is damaged.
func (w *wire) next() (f field, ok bool) {
	if len(w.data) == 0 {
		return f, false
	}
	tag := w.varint()
	f.number = tag >> 3
	switch tag & 7 {
	case wireVarint:
		f.value = w.varint()
	case wireBytes:
		f.bytes = w.take(w.varint())
	case wireFixed8:
		w.take(8)
	case wireFixed4:
		w.take(4)
	default:
		w.bad = true
	}
	w.bad = w.bad || f.number == 0
	return f, !w.bad
}

func (w *wire) varint() (v uint64) {
	if len(w.data) > 0 && w.data[0] < 0x80 { // most are this short
		v, w.data = uint64(w.data[0]), w.data[1:]
		return v
	}
	for i, c := range w.data {
		if i == 10 {
			break
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			w.data = w.data[i+1:]
			return v
		}
	}
	w.bad, w.data = true, nil
	return 0
}

func (w *wire) take(n uint64) []byte {
	if n > uint64(len(w.data)) {
		w.bad, w.data = true, nil
		return nil
	}
	taken := w.data[:n:n]
	w.data = w.data[n:]
	return taken
}
