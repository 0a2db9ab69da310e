package frame

import "strings"

// Symbol is a function's full name in its parts.
type Symbol struct {
	// Package is the import path: "example.com/app/controllers". It is empty for names that have none, such as C functions.
	Package string
	// Receiver is the method's receiver type with its star and without type arguments: "*Reconciler", "Set"; empty for a function.
	Receiver string
	// Name is the function or method: "Reconcile", "main".
	Name string
	// Closure is what the compiler put behind the name for functions inside it: "func1", "func1.2", "gowrap3", "deferwrap1"; often empty.
	Closure string
}

// Split takes a function's full name apart.
//
//	Split("example.com/app/controllers.(*Reconciler).Reconcile.func1.2")
//
// gives Package "example.com/app/controllers", Receiver "*Reconciler", Name "Reconcile", Closure "func1.2". It never
// fails: what it cannot place stays in Name. Type arguments ("[...]") and the suffix "-fm" of a method value are dropped.
func Split(function string) Symbol {
	function = stripTypeArguments(strings.TrimSuffix(function, "-fm"))
	pkg := Package(function)
	rest := strings.TrimPrefix(function[len(pkg):], ".")
	s := Symbol{Package: pkg}
	if strings.HasPrefix(rest, "(") {
		if end := strings.IndexByte(rest, ')'); end > 0 {
			s.Receiver, rest = rest[1:end], strings.TrimPrefix(rest[end+1:], ".")
		}
	}
	name, closure, ok := strings.Cut(rest, ".")
	s.Name = name
	if !ok {
		return s
	}
	if s.Receiver == "" && !isClosure(closure) {
		s.Receiver = name // a method with a value receiver: "pkg.Set.Len.func1"
		s.Name, s.Closure, _ = strings.Cut(closure, ".")
		return s
	}
	s.Closure = closure
	return s
}

// Package gives the import path of a function's full name: the part up to the first dot behind the last slash.
// Slashes inside type arguments or receivers do not count, and the dot in the usual endings of import paths, ".v3" and
// ".go", is part of the path.
//
//	Package("k8s.io/client-go/tools/cache.(*controller).Run") // "k8s.io/client-go/tools/cache"
//	Package("gopkg.in/yaml.v3.Unmarshal")                     // "gopkg.in/yaml.v3"
func Package(function string) string {
	end := len(function)
	if i := strings.IndexAny(function, "[("); i >= 0 {
		end = i
	}
	slash := strings.LastIndexByte(function[:end], '/') + 1
	dot := strings.IndexByte(function[slash:end], '.')
	if dot < 0 {
		return ""
	}
	dot += slash
	if slash > 0 {
		ending, _, more := strings.Cut(function[dot+1:], ".")
		if more && isPathEnding(ending) {
			dot += 1 + len(ending)
		}
	}
	return function[:dot]
}

// isPathEnding tells "v3" and "go", which end import paths behind a dot. A function or type of that name does not occur.
func isPathEnding(s string) bool {
	if s == "go" {
		return true
	}
	digits, ok := strings.CutPrefix(s, "v")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// isClosure tells the compiler's names for functions inside functions from a method's name.
func isClosure(s string) bool {
	head, _, _ := strings.Cut(s, ".")
	for _, prefix := range []string{"func", "gowrap", "deferwrap"} {
		if rest, ok := strings.CutPrefix(head, prefix); ok && startsWithDigit(rest) {
			return true
		}
	}
	return startsWithDigit(head)
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// stripTypeArguments removes every bracketed part: "(*queue[...]).Get" becomes "(*queue).Get".
func stripTypeArguments(s string) string {
	if strings.IndexByte(s, '[') < 0 {
		return s
	}
	var b strings.Builder
	depth := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '[':
			depth++
		case c == ']' && depth > 0:
			depth--
		case depth == 0:
			b.WriteByte(c)
		}
	}
	return b.String()
}
