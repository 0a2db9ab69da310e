package stackmatch

// symbolTable keeps one copy of each function name and file path.
type symbolTable struct {
	functions map[string]string // as printed, to the name
	files     map[string]string
}

func (t *symbolTable) function(raw []byte) string {
	if name, ok := t.functions[string(raw)]; ok {
		return name
	}
	if t.functions == nil {
		t.functions = map[string]string{}
	}
	printed := string(raw)
	name := unescapeSymbol(printed)
	t.functions[printed] = name
	return name
}

func (t *symbolTable) file(raw []byte) string {
	if kept, ok := t.files[string(raw)]; ok {
		return kept
	}
	if t.files == nil {
		t.files = map[string]string{}
	}
	path := string(raw)
	t.files[path] = path
	return path
}
