package stackmatch

// labelTable keeps one copy of every set of labels of a dump.
type labelTable struct {
	byText map[string]*labelSet // as printed
	sets   map[string]*labelSet // by content
}

// parse gives the labels printed in a header.
func (t *labelTable) parse(text []byte) *labelSet {
	if set, ok := t.byText[string(text)]; ok {
		return set
	}
	set := t.intern(parseLabels(string(text)))
	if t.byText == nil {
		t.byText = map[string]*labelSet{}
	}
	t.byText[string(text)] = set
	return set
}

// intern gives the one copy of a sorted list of labels.
func (t *labelTable) intern(labels []Label) *labelSet {
	key := labelText(labels)
	if set, ok := t.sets[key]; ok {
		return set
	}
	set := &labelSet{labels: labels, hash: labelsHash(hashStart, labels)}
	if t.sets == nil {
		t.sets = map[string]*labelSet{}
	}
	t.sets[key] = set
	return set
}
